// Sends requests to the server, and notices when it is gone.

let offline = false;
let onChange = () => {};

/** Call a function with true when the server is lost and with false when it is back. */
export function watchConnection(listener) {
  onChange = listener;
}

/** What the server offers: examples, models, limits. */
export async function about() {
  const response = await fetch("/api/about");
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return response.json();
}

/** Send a request; resolves to {result} or {error}, or to null if it was aborted or the server is gone. */
export async function ask(action, body, signal) {
  let response;
  try {
    response = await fetch(`/api/${action}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal,
    });
    const answer = await response.json();
    return answer;
  } catch (problem) {
    if (problem.name === "AbortError") return null;
    if (response !== undefined && response.status !== 503)
      return { error: { kind: "internal", message: `the server answered ${response.status}` } };
    lost();
    return null;
  }
}

function lost() {
  if (offline) return;
  offline = true;
  onChange(true);
  const timer = setInterval(async () => {
    try {
      await about();
    } catch {
      return;
    }
    clearInterval(timer);
    offline = false;
    onChange(false);
  }, 1000);
}

/** Runs one piece of work at a time; of those that arrive in the meantime, only the last is run. */
export class Latest {
  #busy = false;
  #next = null;

  async run(work) {
    if (this.#busy) {
      this.#next = work;
      return;
    }
    this.#busy = true;
    try {
      for (let current = work; current;) {
        await current();
        current = this.#next;
        this.#next = null;
      }
    } finally {
      this.#busy = false;
    }
  }
}

// @ts-check
/**
 * A client of Server-Sent Events over `fetch`, because EventSource cannot send
 * a token. A broken stream resumes after the last received event.
 */
import { CallError, send } from "./api.js";

/** @typedef {{id: string, event: string, data: string}} ServerEvent */

const MAX_PAUSE_MS = 10_000;

/**
 * Follows a stream until its handler says that it was the last event.
 * @param {string} path
 * @param {object} options
 * @param {AbortSignal} options.signal ends it early
 * @param {(event: ServerEvent) => boolean} options.onEvent true: it was the last one
 * @param {(connected: boolean) => void} options.onConnection
 * @throws {CallError} when the server refuses the stream
 */
export async function followEvents(path, { signal, onEvent, onConnection }) {
  let lastId = "";
  let pauseMs = 500;
  while (!signal.aborted) {
    try {
      const res = await send(path, {
        signal,
        headers: { accept: "text/event-stream", ...(lastId ? { "last-event-id": lastId } : {}) },
      });
      onConnection(true);
      for await (const event of readEvents(res)) {
        lastId = event.id || lastId;
        pauseMs = 500;
        if (onEvent(event)) {
          return;
        }
      }
    } catch (err) {
      const { status } = err instanceof CallError ? err : { status: 0 };
      if (status >= 400 && status < 500 && status !== 429) {
        throw err;
      }
    }
    if (!signal.aborted) {
      onConnection(false);
      await pause(pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
    }
  }
}

/**
 * Parses the events of one response, in the format of the HTML standard
 * (section 9.2.6).
 * @param {Response} res
 * @returns {AsyncGenerator<ServerEvent>}
 */
export async function* readEvents(res) {
  let unread = "";
  for await (const text of texts(res)) {
    unread += text;
    const blocks = unread.split(/\r\n\r\n|\n\n|\r\r/);
    unread = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = parseBlock(block);
      if (event.data) {
        yield event;
      }
    }
  }
}

/** @param {Response} res */
async function* texts(res) {
  const reader = res.body?.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) {
      yield read.value;
    }
  } finally {
    await reader?.cancel().catch(() => {}); // It is broken already, which its reader was told.
  }
}

/** @param {string} block */
function parseBlock(block) {
  const event = { id: "", event: "message", data: "" };
  /** @type {string[]} */
  const data = [];
  for (const line of block.split(/\r\n|\n|\r/)) {
    const [, name, value] = /^([^:]+):? ?(.*)$/.exec(line) ?? [];
    if (name === "data") {
      data.push(value ?? "");
    } else if (name === "id" || name === "event") {
      event[name] = value ?? "";
    }
  }
  event.data = data.join("\n");
  return event;
}

/**
 * @param {number} pauseMs
 * @param {AbortSignal} signal
 */
function pause(pauseMs, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, pauseMs, undefined);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve(undefined);
    });
  });
}

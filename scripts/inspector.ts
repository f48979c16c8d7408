/** Asks another process of Node about its memory, by V8's inspector. */
import { once } from "node:events";

interface Answer {
  readonly id: number;
  readonly result: { readonly result?: { readonly value?: unknown } };
}

export class Inspector {
  readonly #address: string;

  /** @param address of the inspector, `ws://127.0.0.1:port/id` */
  constructor(address: string) {
    this.#address = address;
  }

  /** Collects the garbage of the process; answers what is left of its heap, in bytes. */
  async liveHeapBytes(): Promise<number> {
    const socket = new WebSocket(this.#address);
    try {
      await once(socket, "open");
      await ask(socket, { id: 1, method: "HeapProfiler.enable" });
      await ask(socket, { id: 2, method: "HeapProfiler.collectGarbage" });
      const params = { expression: "process.memoryUsage().heapUsed" };
      const { result } = await ask(socket, { id: 3, method: "Runtime.evaluate", params });
      return Number(result.result?.value);
    } finally {
      socket.close();
    }
  }
}

async function ask(
  socket: WebSocket,
  question: { readonly id: number; readonly method: string; readonly params?: object },
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const hear = ({ data }: MessageEvent): void => {
    const answer = JSON.parse(String(data)) as Answer;
    if (answer.id === question.id) {
      resolve(answer);
    }
  };
  const close = (): void => reject(new Error("the process ended while it was asked for its heap"));
  socket.addEventListener("message", hear);
  socket.addEventListener("close", close);
  socket.send(JSON.stringify(question));
  try {
    return await promise;
  } finally {
    socket.removeEventListener("message", hear);
    socket.removeEventListener("close", close);
  }
}

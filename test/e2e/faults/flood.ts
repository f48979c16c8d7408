/** A thread that sends the same body several times at once; it answers with the statuses. */
import { request } from "node:http";
import { parentPort, workerData } from "node:worker_threads";

/** What to send, and where. */
export interface Flood {
  readonly port: number;
  readonly path: string;
  readonly body: string;
  readonly contentType: string;
  readonly times: number;
}

const { port, path, body, contentType, times } = workerData as Flood;
const bytes = Buffer.from(body);

function send(): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": contentType, "content-length": bytes.length };
    const req = request({ host: "127.0.0.1", port, path, method: "POST", headers, agent: false });
    req.on("response", (res) => res.resume().on("end", () => resolve(res.statusCode)));
    req.on("error", reject).end(bytes);
  });
}

parentPort?.postMessage(await Promise.all(Array.from({ length: times }, send)));

import { request } from "node:http";
import { expect, it } from "vitest";
import { ServerProcess } from "./process.ts";

const CHUNK = Buffer.alloc(1 << 20, 0x20);
const CHUNKS = 100;

/** Posts a body, chunk after chunk as fast as the server takes them, and gives the status. */
async function post(port: number, path: string, headers: Record<string, string>): Promise<number> {
  const answered = Promise.withResolvers<number>();
  const req = request({
    host: "127.0.0.1",
    port,
    method: "POST",
    path,
    headers: { "content-type": "application/json", ...headers },
  });
  req.on("response", (res) => answered.resolve(res.resume().statusCode ?? 0));
  req.on("error", answered.reject);
  for (let sent = 0; sent < CHUNKS; sent += 1) {
    await new Promise((resolve) => req.write(CHUNK, resolve));
  }
  req.end();
  return answered.promise;
}

it("bodies of 100 MB to what takes JSON are refused, and the memory stays flat", async () => {
  await using served = await ServerProcess.start("calls");
  const told = { "content-length": String(CHUNKS * CHUNK.length) };
  const chunked = { "transfer-encoding": "chunked" };
  expect(await post(served.port, "/repeat", told)).toBe(413);
  const before = await served.peakBytes();
  const paths = ["/repeat", "/sum/submit", "/sum/cancel", "/api/v1/tasks"];
  const posts = paths.flatMap((path) => [
    post(served.port, path, told),
    post(served.port, path, chunked),
  ]);
  expect(new Set(await Promise.all(posts))).toEqual(new Set([413]));
  // Eight at a time are 800 MB; what is left is what the collector has not got round to.
  expect((await served.peakBytes()) - before).toBeLessThan(150 << 20);
  expect((await served.post("/repeat", { text: "alive" })).text).toBe("alive");
});

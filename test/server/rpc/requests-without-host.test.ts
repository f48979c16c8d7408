/** Requests that the library cannot read are answered, and leave nothing behind. */
import { once } from "node:events";
import { connect } from "node:net";
import { expect, it, vi } from "vitest";
import { startServer } from "./server.ts";

async function answerTo(port: number, text: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.end(text);
  let answer = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    answer += chunk;
  });
  await once(socket, "close");
  return answer;
}

it.each(["Host: localhost:99999\r\n", ""])(
  "a call in binary Connect with the header %j is told what is wrong",
  async (host) => {
    const written = vi.spyOn(console, "error");
    await using server = await startServer({});
    const answer = await answerTo(
      server.port,
      `POST /tessera.v1.TaskService/GetTask HTTP/1.0\r\n${host}content-type: application/proto\r\ncontent-length: 0\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain("the request names no host");
    expect(written.mock.calls).toEqual([]);
    written.mockRestore();
  },
);

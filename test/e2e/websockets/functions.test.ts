/** Functions that speak through WebSockets, in both languages, as callers see them. */
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { Program } from "../cli/program.ts";
import { environment, pythonMissing } from "../clients/python-environment.ts";
import { fixture } from "../python/hosted.ts";
import { open } from "./client.ts";

const MEBIBYTE = 1024 ** 2;
const withoutPython = leftOut(pythonMissing);

async function inPython(): Promise<readonly string[]> {
  const packages = ["pydantic>=2", "fastapi", "uvicorn", "websockets", "python-multipart"];
  const { python } = await environment({ name: "mounts", packages });
  return [fixture("sockets/service.py"), "--python", python];
}

describe.each([
  { language: "Python", skipped: withoutPython, args: inPython },
  { language: "TypeScript", skipped: "", args: async () => [fixture("sockets/service.ts")] },
])("a socket in $language $skipped", ({ skipped, args }) => {
  describe.skipIf(skipped)("of a service", () => {
    let program: Program;
    let url: string;

    beforeAll(async () => {
      ({ program, url } = await Program.serve([...(await args()), "--workers", "1"], {
        limitMs: 300_000,
      }));
    }, 300_000);
    afterAll(async () => {
      await program?.[Symbol.asyncDispose]();
    });

    const opened = async (path: string): Promise<WebSocket> => {
      const socket = new WebSocket(`${url.replace("http", "ws")}${path}`);
      socket.binaryType = "arraybuffer";
      await once(socket, "open");
      return socket;
    };
    const answer = async (socket: WebSocket, message: string | Uint8Array<ArrayBuffer>) => {
      const heard = once(socket, "message");
      socket.send(message);
      return ((await heard)[0] as MessageEvent).data;
    };
    const end = async (socket: WebSocket, message: string | Uint8Array<ArrayBuffer>) => {
      const closed = once(socket, "close");
      socket.send(message);
      const { code, reason } = (await closed)[0] as CloseEvent;
      return [code, reason];
    };
    const seen = async () => {
      const res = await fetch(`${url}/seen`, { method: "POST" });
      return (await res.json()) as { left: string[]; sent: number };
    };

    it("gets texts as texts and bytes as bytes, and sends both", async () => {
      const socket = await opened("/live");
      expect(await answer(socket, "hellö")).toBe("hellö");
      expect(await answer(socket, "")).toBe("");
      const bytes = await answer(socket, new Uint8Array([0, 255]));
      expect([...new Uint8Array(bytes)]).toEqual([0, 255]);
      expect(await answer(socket, "who")).toBe("nobody");
      expect((await answer(socket, "x".repeat(MEBIBYTE))).length).toBe(MEBIBYTE);
      socket.close();
    });

    it("closes with 1000 at its end, with 1011 where it fails, and as it says", async () => {
      expect(await end(await opened("/live"), "end")).toEqual([1000, ""]);
      expect(await end(await opened("/live"), "fail")).toEqual([1011, ""]);
      expect(await end(await opened("/live"), "close")).toEqual([4001, "enough"]);
      await program.says("stderr", /ValueError: what nobody else is told/);
    });

    it("takes no message above its bound", async () => {
      const long = "x".repeat(MEBIBYTE + 1);
      expect((await end(await opened("/live"), long))[0]).toBe(1009);
      expect((await end(await opened("/v1/flood"), "x".repeat(1_025)))[0]).toBe(1009);
    });

    it("goes on behind its loop when the caller leaves, with or without a word", async () => {
      (await opened("/live?name=polite")).close();
      await expect.poll(async () => (await seen()).left).toContain("polite");
      const { stream } = await open(url, { path: "/live?name=rude" });
      stream.destroy();
      await expect.poll(async () => (await seen()).left).toContain("rude");
    });

    it("waits for a caller that reads slowly, and ends when it has left", async () => {
      const before = (await seen()).left.length;
      const { stream } = await open(url, { path: "/v1/flood" });
      stream.pause();
      let last = -1;
      await expect
        .poll(
          async () => {
            const { sent } = await seen();
            const stands = sent > 0 && sent === last;
            last = sent;
            return stands;
          },
          { interval: 300, timeout: 20_000 },
        )
        .toBe(true);
      expect(last * 64 * 1024).toBeLessThan(32 * MEBIBYTE);
      stream.destroy();
      await expect.poll(async () => (await seen()).left.length).toBeGreaterThan(before);
    });

    it("asks all other requests for a WebSocket, and is at its own path alone", async () => {
      const plain = await fetch(`${url}/live`);
      expect([plain.status, await plain.text()]).toEqual([
        426,
        "/live is a WebSocket: open it as one, at wss://.\n",
      ]);
      expect((await fetch(`${url}/live/below`)).status).toBe(404);
      expect((await open(url, { path: "/live/below" })).status).toBe(404);
    });

    it("is reached over HTTP/2, and closes with 1012 when its worker stops", async () => {
      const over2 = await open(url, { over: "HTTP/2", path: "/live" });
      expect(over2.status).toBe(200);
      const socket = await opened("/live");
      const closed = once(socket, "close");
      program.send("SIGTERM");
      expect(((await closed)[0] as CloseEvent).code).toBe(1012);
      over2.stream.destroy();
    });
  });
});

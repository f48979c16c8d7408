import { expect } from "vitest";
import type { FileValue, Payload } from "../../../src/protocol/messages.ts";
import type { Contract } from "../contract.ts";
import {
  attempt,
  claim,
  endAttempt,
  key,
  newTask,
  openLease,
  startTask,
  submit,
} from "../fixtures.ts";

/** Every byte value, over and over, in a period that no power of two divides. */
function bytes(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => (index % 257) & 0xff);
}

function text(characters: number): Payload {
  return { json: JSON.stringify("x".repeat(characters - 2)), files: [] };
}

function files(...data: Uint8Array[]): Payload {
  const values = data.map(
    (bytes, index): FileValue => ({
      contentType: index % 2 ? "image/png" : "application/octet-stream",
      ...(index % 2 && { filename: `picture ${index} "ü".png` }),
      data: bytes,
    }),
  );
  return { json: JSON.stringify({ files: values.map((_, index) => index) }), files: values };
}

const PAYLOADS: Readonly<Record<string, Payload>> = {
  "a small text": { json: '{"a": [1, 2.50, null],  "b":"\\u0000 \\ud83d"}', files: [] },
  "text of many scripts": { json: JSON.stringify("żółć 漢字 🎉 \u2028"), files: [] },
  "2,048 characters": text(2_048),
  "2,049 characters": text(2_049),
  "a text of 3 MB": { json: JSON.stringify("ü🎉".repeat(500_000)), files: [] },
  "a file": files(bytes(10)),
  "an empty file": files(new Uint8Array(0)),
  "a file of 5 MB": files(bytes(5_000_000)),
  "several files with names": files(bytes(3), bytes(300), new Uint8Array(0), bytes(70_000)),
};

export function payloadsContract({ it }: Contract): void {
  for (const [name, payload] of Object.entries(PAYLOADS)) {
    it(`keeps ${name} byte for byte, as arguments and as a result`, async (storage) => {
      await openLease(storage);
      await submit(storage, newTask("a", { arguments: payload }));
      expectSame(await storage.getArguments(key("a")), payload);
      const [claimed] = await claim(storage);
      expectSame(claimed?.arguments, payload);
      await endAttempt(storage, attempt("a"), { status: "success", result: payload });
      expectSame(await storage.getResult(key("a")), payload);
    });
  }

  it("keeps large arguments and a large result of one task apart", async (storage) => {
    const given = files(bytes(4_000), bytes(5_000));
    const returned = files(bytes(6_000));
    const running = await startTask(storage, "a", { arguments: given });
    await endAttempt(storage, running, { status: "success", result: returned });
    expectSame(await storage.getArguments(key("a")), given);
    expectSame(await storage.getResult(key("a")), returned);
  });

  it("keeps the head of a request with the arguments, and that of an answer with the result", async (storage) => {
    const request = {
      ...{ method: "POST", url: "http://a.example/b?c=%20d", client: "192.0.2.1" },
      headers: [
        ["x-tenant", "Zürich"],
        ["x-tenant", "\u0001"],
      ] as const,
    };
    const response = { status: 418, headers: [["set-cookie", "a=b; Path=/"]] as const };
    const running = await startTask(storage, "a", {
      arguments: { json: '{"a":1}', files: [], request },
    });
    await endAttempt(storage, running, {
      status: "success",
      result: { json: "1", files: [], response },
    });
    expect(await storage.getArguments(key("a"))).toEqual({ json: '{"a":1}', files: [], request });
    expect(await storage.getResult(key("a"))).toEqual({ json: "1", files: [], response });
  });

  it("keeps large payloads of tasks of one id in two deployments apart", async (storage) => {
    const [first, second] = [files(bytes(3_000)), files(bytes(4_000))];
    await submit(
      storage,
      newTask("a", { arguments: first }),
      newTask("a", { arguments: second, deploymentId: "deployment-2" }),
    );
    expectSame(await storage.getArguments(key("a")), first);
    expectSame(await storage.getArguments(key("a", "deployment-2")), second);
  });
}

/** Compares bytes as bytes: element by element takes seconds for megabytes. */
function expectSame(actual: Payload | undefined, expected: Payload): void {
  expect(actual?.json === expected.json).toBe(true);
  const facts = ({ files }: Payload) =>
    files.map((file) => {
      const { data, ...rest } = file as FileValue;
      return { ...rest, bytes: data?.byteLength };
    });
  expect(actual && facts(actual)).toEqual(facts(expected));
  expect(actual?.text).toEqual(expected.text);
  for (const [index, file] of expected.files.entries()) {
    const { data } = file as FileValue;
    expect(Buffer.from(dataOf(actual, index) ?? []).equals(data ?? Buffer.alloc(0))).toBe(true);
  }
}

function dataOf(payload: Payload | undefined, index: number): Uint8Array | undefined {
  return (payload?.files[index] as FileValue | undefined)?.data;
}

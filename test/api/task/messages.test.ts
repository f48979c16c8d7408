import { expect, it } from "vitest";
import { finallyReleasing } from "../../../src/api/task/messages.ts";
import { localFiles } from "../../storage/files/local.ts";

it("gives back the memory of small files when their call has ended, and not before", async () => {
  const data = Buffer.allocUnsafeSlow(20_000);
  const payload = { json: '{"file":0}', files: [{ contentType: "image/png", data }] };
  const { promise, resolve } = Promise.withResolvers<number>();
  const calling = finallyReleasing(promise, payload, localFiles().api);
  expect(data.byteLength).toBe(20_000);
  resolve(1);
  expect(await calling).toBe(1);
  expect(data.byteLength).toBe(0);
});

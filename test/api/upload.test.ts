import type { HandlerContext } from "@connectrpc/connect";
import { createContextValues } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { uploadFile } from "../../src/api/upload.ts";
import { setMember } from "../../src/server/rpc/engine/caller.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function context(): HandlerContext {
  const values = createContextValues();
  setMember(values, { organizationId: "o", organization: "acme" } as never);
  return { values } as HandlerContext;
}

it("an upload whose caller sends nothing at all ends after a minute", async () => {
  const unused = {} as never;
  const upload = uploadFile({
    hosting: unused,
    blobs: unused,
    accounts: unused,
    now: Date.now,
    newId: () => "id",
  } as never);
  const silent = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) };
  const answer = upload(silent as never, context());
  const refused = expect(answer).rejects.toMatchObject({ reason: "CALL_TIMEOUT" });
  await vi.advanceTimersByTimeAsync(60_000);
  await refused;
});

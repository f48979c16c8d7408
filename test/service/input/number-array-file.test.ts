import { afterAll, describe, expect, it } from "vitest";
import type { EndpointManifest } from "../../../src/protocol/manifest.ts";
import { jsonOf } from "../../../src/protocol/messages.ts";
import { ArgumentsReader, type CallInput } from "../../../src/service/input/arguments.ts";
import { ReaderThreads } from "../../../src/service/input/threads.ts";
import { localFiles } from "../../storage/files/local.ts";
import { endpoint } from "../manifests.ts";

const threads = new ReaderThreads({
  onFailed(err) {
    throw err;
  },
});
afterAll(() => threads[Symbol.asyncDispose]());

const taking: EndpointManifest = endpoint({
  name: "run",
  json: "python",
  arrays: ["values"],
  input: { type: "object", properties: { values: { type: "array" }, scale: { type: "number" } } },
  check: { type: "object", properties: { values: {}, scale: { type: "number" } } },
});

const values = Array.from({ length: 40_000 }, (_, index) => Math.sin(index));
const text = JSON.stringify({ scale: 2, values });

async function read(manifest: EndpointManifest, body: string) {
  const value = { contentType: "application/json", data: Buffer.from(body) };
  const input: CallInput = { case: "body", value };
  const { api } = localFiles();
  return new ArgumentsReader(manifest).read(input, api, threads);
}

const picture = "data:image/png;base64,AAAA";
const withFile = { files: { picture: { required: false, array: false } } };

describe("a large array of numbers", () => {
  it("is doubles behind the files of the call, in memory, and its shape is its type", async () => {
    const body = JSON.stringify({ values, picture, scale: 2 });
    const { json, files } = await read({ ...taking, ...withFile }, body);
    expect(JSON.parse(json)).toEqual({ values: { $array: 1 }, picture: 0, scale: 2 });
    expect(files).toHaveLength(2);
    const file = files[1];
    expect(file?.contentType).toBe("application/vnd.tessera.doubles;shape=40000");
    const data = file !== undefined && "data" in file ? file.data : new Uint8Array();
    expect(data.byteLength).toBe(8 * 40_000);
    expect(new Float64Array(data.slice().buffer)).toEqual(Float64Array.from(values));
  });

  it.each([
    ["of a task, which is stored", { ...taking, kind: "task" as const }, text],
    ["of an endpoint that does not ask for it", { ...taking, arrays: [] }, text],
    ["of an argument whose schema says more", { ...taking, check: taking.input }, text],
    ["that has no value somewhere", taking, text.replace("]", ",null]")],
    ["in an argument of another name", taking, text.replace('"values"', '"others"')],
    ["of a body that is small", taking, '{"values":[0.5,1.5,2.5,3.5,4.5,5.5,6.5,7.5]}'],
  ])("%s goes on as it came", async (_, manifest, body) => {
    const payload = await read(manifest, body);
    expect(payload.files).toEqual([]);
    expect(jsonOf(payload)).toBe(body);
  });

  it("is refused as it was with what is wrong beside it", async () => {
    await expect(read(taking, text.replace('"scale":2', '"scale":"x"'))).rejects.toMatchObject({
      reason: "ARGUMENTS_INVALID",
      violations: [{ field: "scale", description: "must be number" }],
    });
    await expect(read(taking, text.replace("]", "]]"))).rejects.toMatchObject({
      reason: "BODY_MALFORMED",
    });
  });
});

/** Numbers and arguments of a service in Python: as they were sent, and as pydantic takes them. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { Program } from "../cli/program.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import { serviceInterpreter } from "./interpreter.ts";

const SERVICE = fileURLToPath(new URL("../../fixtures/services/serve/numbers.py", import.meta.url));
const CALL = "tessera.v1.EndpointService/CallEndpoint";

const skipped = leftOut(pythonMissing);

describe.skipIf(skipped)(`a service in Python${skipped}`, () => {
  let program: Program;
  let url: string;

  beforeAll(async () => {
    const python = (await serviceInterpreter()).named ?? "";
    ({ program, url } = await Program.serve([SERVICE, "--python", python, "--workers", "1"]));
  }, 300_000);
  afterAll(() => program[Symbol.asyncDispose]());

  async function post(path: string, body: string): Promise<{ status: number; text: string }> {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/${path}`, { method: "POST", headers, body });
    return { status: answer.status, text: await answer.text() };
  }

  it("gets every number as it was sent, whichever way it came", async () => {
    const sent = '[9007199254740993,18446744073709551616,1.0,-0.0,1e400,NaN,-Infinity,"NaN"]';
    const shown = "[9007199254740993, 18446744073709551616, 1.0, -0.0, inf, nan, -inf, 'NaN']";
    expect((await post("shown", `{"value":${sent}}`)).text).toBe(shown);
    for (const [path, body] of [
      ["api/v1/endpoints/shown:call", `{"arguments":{"value":${sent}}}`],
      [CALL, `{"endpoint":"shown","arguments":{"value":${sent}}}`],
    ] as const) {
      expect(JSON.parse((await post(path, body)).text), path).toMatchObject({ value: shown });
    }
    const form = new FormData();
    form.set("value", sent);
    const answer = await fetch(`${url}/shown`, { method: "POST", body: form });
    expect(await answer.text()).toBe(shown);
    const { text } = await post("later/submit", `{"value":${sent}}`);
    const { task_id: id } = JSON.parse(text) as { task_id: string };
    const result = await fetch(`${url}/later/get?task_id=${id}&wait=60`);
    expect(await result.text()).toBe(shown);
    const stored = await fetch(`${url}/later/arguments?task_id=${id}`);
    expect(await stored.text()).toBe(`{"arguments":{"value":${sent}},"files":[]}`);
  });

  it("gives every integer as it is, and not in a message that would round it", async () => {
    expect((await post("wide", "{}")).text).toBe("18446744073709551615");
    const found = await post("api/v1/endpoints/wide:call", "{}");
    expect(found.text).toContain(
      "the result has 18446744073709551615, which a message cannot hold",
    );
  });

  it.each([
    ['{"count":"5"}', [5, [], [], null]],
    ['{"count":3.0}', [3, [], [], null]],
    ['{"words":"a b"}', [0, ["a", "b"], [], null]],
    ['{"kinds":["x","x","y"]}', [0, [], ["x", "y"], null]],
    ['{"person":{"given":1}}', [0, [], [], 1]],
    ['{"person":{"givenName":"2"}}', [0, [], [], 2]],
  ])("takes what pydantic takes: %s", async (body, taken) => {
    expect(JSON.parse((await post("taken", body)).text)).toEqual(taken);
  });

  it.each([
    ['{"count":[]}', "count", "must be integer"],
    ['{"count":"five"}', "count", "valid integer"],
    ['{"cuont":1}', "cuont", "is not an argument"],
    ['{"person":{}}', "person", "required"],
    ['{"words":[1]}', "words", ""],
  ])("refuses what it refuses, whoever does: %s", async (body, field, why) => {
    const { status, text } = await post("taken", body);
    expect([status, text]).toEqual([400, expect.stringContaining("ARGUMENTS_INVALID")]);
    expect(text).toContain(`"field":"${field}`);
    expect(text.toLowerCase()).toContain(why);
  });

  it("says whose limit a body is beyond", async () => {
    const { status, text } = await post("taken", `{"words":"${"x ".repeat(2_000)}"}`);
    expect(status).toBe(413);
    expect(text).toContain("2048 bytes; the max_json of endpoint taken");
  });
});

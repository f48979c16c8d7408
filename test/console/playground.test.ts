import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import {
  firstForm,
  JSON_PROBLEM,
  readArguments,
  switchedForm,
  withValues,
} from "../../src/console/app/pages/playground/arguments.ts";
import {
  type PlaygroundEndpoint,
  readEndpoint,
} from "../../src/console/app/pages/playground/description.ts";
import { type FormSchema, problemOf } from "../../src/console/app/pages/playground/schema.ts";
import { type SnippetLanguage, snippet } from "../../src/console/app/pages/playground/snippets.ts";
import { openApiDocument } from "../../src/service/openapi/document.ts";
import { schemaDocument } from "../../src/service/schema.ts";
import { SERVICE } from "../e2e/console/service.ts";

const docs = openApiDocument(SERVICE, { version: "1", authorization: false });

function endpoint(name: string): PlaygroundEndpoint {
  const { routes } = schemaDocument(SERVICE) as unknown as {
    readonly routes: readonly Parameters<typeof readEndpoint>[0][];
  };
  const route = routes.find((one) => one.name === name);
  return readEndpoint(route as never, docs as never);
}

describe("the form of an endpoint", () => {
  const summarize = endpoint("summarize");

  it("begins with the defaults and with examples of what is required, and can be sent so", () => {
    const { values, problems } = readArguments(summarize, firstForm(summarize));
    expect(values).toEqual({
      text: "The fox is quick. The dog is lazy.",
      sentences: 3,
      style: "plain",
      shout: false,
    });
    expect(problems).toEqual({});
  });

  it("says what is missing", () => {
    const cleared = withValues(summarize, firstForm(summarize), {});
    expect(readArguments(summarize, cleared).problems).toEqual({ text: "is required" });
  });

  it("is the same in fields and as JSON, with its numbers as they were typed", () => {
    const typed = withValues(summarize, firstForm(summarize), { text: "a", sentences: 3 });
    const entries = { ...typed.entries, sentences: "7.0", options: '{"seed": 9007199254740993}' };
    const json = switchedForm(summarize, { ...typed, entries });
    expect(json.json).toContain('"sentences": 7.0');
    expect(json.json).toContain('"seed": 9007199254740993');
    const fields = switchedForm(summarize, json);
    expect(fields.json).toBeUndefined();
    expect(fields.entries.sentences).toBe("7.0");
    expect(JSON.stringify(readArguments(summarize, fields).values)).toContain("9007199254740993");
  });

  it("keeps JSON that it cannot read, and says why", () => {
    const kept = switchedForm(summarize, { ...firstForm(summarize), json: "[1]" });
    expect(kept.json).toBe("[1]");
    expect(kept.problems[JSON_PROBLEM]).toBe("must be a JSON object of arguments");
  });

  it("takes a number that the browser cannot read for none", () => {
    const { entries } = firstForm(summarize);
    const form = { entries: { ...entries, text: "a", sentences: undefined }, problems: {} };
    expect(readArguments(summarize, form).problems).toEqual({ sentences: "must be a number" });
  });
});

describe("what is wrong with a value", () => {
  const schema: FormSchema = {
    type: "object",
    properties: { list: { type: "array", items: { type: "number", exclusiveMinimum: 0 } } },
    required: ["list"],
  };

  it.each([
    [{}, "'list' is missing"],
    [{ list: 1 }, "list: must be an array"],
    [{ list: [1, 0] }, "list.1: must be more than 0"],
    [{ list: [1] }, undefined],
  ])("is told with its place: %j, %s", (value, problem) => {
    expect(problemOf({}, schema, value)).toBe(problem);
  });

  it("ends with a schema that leads to itself", () => {
    const circle = { a: { $ref: "#/a" } };
    expect(problemOf(circle, { $ref: "#/a" }, 1)).toBeUndefined();
  });
});

describe("the call for other programs", () => {
  const write = (language: SnippetLanguage, name: string, values: object, needsToken = false) =>
    snippet(language, { url: "http://localhost:3000/", needsToken }, endpoint(name), {
      values: { ...values },
      files: {},
    });

  it("is TypeScript that sends what is in the form", () => {
    const text = { text: 'say "it"', sentences: 2 };
    expect(write("TypeScript", "summarize", text, true)).toBe(`import { env } from "node:process";
import { createClient } from "tessera-platform/client";

const client = createClient({ url: "http://localhost:3000", token: env.TESSERA_TOKEN });
const result = await client.summarize({ text: "say \\"it\\"", sentences: 2 });`);
    expect(write("TypeScript", "classify", {})).toContain(
      'image: new File([await openAsBlob("image.file")], "image.file")',
    );
    expect(write("TypeScript", "tell", {})).toContain("of client.tell.stream({})");
    expect(write("TypeScript", "broken", {})).toContain("client.broken.submit({})");
  });

  it("is Python that Python reads", async () => {
    const values = { text: "it's ü", polite: true, options: { seed: null } };
    const program = write("Python", "summarize", values);
    expect(program).toContain('text="it\'s ü", polite=True, options={"seed":None}');
    const programs = ["summarize", "classify", "tell", "broken"].map((name) =>
      write("Python", name, {}, true),
    );
    for (const one of [program, ...programs]) {
      const compile = `import sys; compile(sys.argv[1], "snippet", "exec")`;
      await promisify(execFile)("python3", ["-c", compile, one]);
    }
  });
});

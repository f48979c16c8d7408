import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  Connection,
  clientSource,
  ForeignAnswerError,
  fetchSchema,
  type ServiceSchema,
} from "../../../src/client/index.ts";
import { type ServedClients, serveClients } from "./served.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

let served: ServedClients;
let folder: string;
beforeAll(async () => {
  served = await serveClients();
  folder = mkdtempSync(join(tmpdir(), "tessera-generated-"));
});
afterAll(async () => {
  await served[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const PROGRAM = `import { createClient } from "./generated.ts";

const client = createClient({ url: process.argv[2] ?? "" });
const greeting: string = await client.greet({ name: "Ada", times: 1 });
const sum: number = await client.add({ numbers: [1, 2] });
const file: File = await client.paint({ name: "p.png" });
const task = await client.measure_later.submit({ document: new Uint8Array(3) });
// @ts-expect-error: an api cannot be submitted
client.greet.submit;
// @ts-expect-error: an argument is missing
const wrong = () => client.greet({ times: 1 });
process.stdout.write(JSON.stringify([greeting, sum, file.name, await task.wait(), typeof wrong]));
`;

describe("a generated client", () => {
  it("has the types of the service, and calls it", async () => {
    const schema = await fetchSchema(new Connection({ url: served.url }));
    writeFileSync(join(folder, "generated.ts"), clientSource(schema));
    writeFileSync(join(folder, "program.ts"), PROGRAM);
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    const extended = { extends: join(ROOT, "tsconfig.json"), include: ["*.ts"] };
    const paths = { "tessera-platform/client": [join(ROOT, "src/client/index.ts")] };
    const compilerOptions = { paths, typeRoots: [join(ROOT, "node_modules/@types")] };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ ...extended, compilerOptions }));
    const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
    const run = promisify(execFile);
    await run(process.execPath, [tsc, "-p", folder]).catch((err) => expect.fail(err.stdout));
    mkdirSync(join(folder, "node_modules/tessera-platform"), { recursive: true });
    writeFileSync(
      join(folder, "node_modules/tessera-platform/package.json"),
      JSON.stringify({ type: "module", exports: { "./client": "./src/client/index.ts" } }),
    );
    for (const part of ["src", "gen"]) {
      symlinkSync(join(ROOT, part), join(folder, "node_modules/tessera-platform", part));
    }
    const program = join(folder, "program.ts");
    const { stdout } = await run(process.execPath, [program, served.url]);
    const facts = { document: expect.objectContaining({ bytes: 3 }), others: [] };
    expect(JSON.parse(stdout)).toEqual(["Hello Ada!", 3, "p.png", facts, "function"]);
  });

  it("is written for names and words of any kind", () => {
    const schema: ServiceSchema = {
      name: "7-up",
      description: "Ends */ here.",
      routes: [
        {
          name: "a-b",
          is_task: true,
          input: {
            type: "object",
            properties: {
              "x y": { type: ["string", "null"] },
              mode: { enum: ["a", 1, null] },
              map: { type: "object", additionalProperties: { type: "integer" } },
              list: { type: "array", items: { enum: ["p", "q"] } },
              any: {},
            },
            required: ["x y"],
          },
          output: { type: "string" },
        },
        {
          name: "lists",
          is_task: false,
          input: { type: "object", additionalProperties: false },
          output: {
            type: "object",
            properties: {
              list: { type: ["array", "null"], items: { enum: ["p", "q"] } },
              map: { type: "object", additionalProperties: { type: "integer" } },
            },
            required: ["map"],
          },
        },
      ],
    };
    const source = clientSource(schema);
    expect(source).toContain("/** Ends *\\/ here. */\nexport interface Service7Up {");
    expect(source).toContain(`  readonly "a-b": EndpointTypes<
    "task",
    {
      readonly "x y": string | null;
      readonly mode?: "a" | 1 | null;
      readonly map?: Readonly<Record<string, number>>;
      readonly list?: readonly ("p" | "q")[];
      readonly any?: unknown;
    },
    string
  >;`);
    // Results are their caller's to change.
    expect(source).toContain(`    Readonly<Record<string, never>>,
    {
      list?: ("p" | "q")[] | null;
      map: Record<string, number>;
    }
  >;`);
    expect(source).toContain('  "a-b": {"kind":"task","result":"text"},');
  });

  it("is not written of what is no deployment", async () => {
    const connection = new Connection({ url: `${served.url}/nothing`, retries: 0 });
    await expect(fetchSchema(connection)).rejects.toThrow();
    const fetch = async () => Response.json({ openapi: "3.1.0" });
    const other = new Connection({ url: served.url, fetch });
    await expect(fetchSchema(other)).rejects.toThrow(ForeignAnswerError);
  });
});

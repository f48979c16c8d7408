/** Every program of the README and of the pages type-checks: TypeScript by tsc, Python by mypy. */
import { execFile } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { environment, pythonMissing, ROOT } from "../clients/python-environment.ts";

const TSC = join(ROOT, "node_modules/typescript/bin/tsc");
const PAGES = [
  "README.md",
  "clients/python/README.md",
  ...readdirSync(join(ROOT, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

const run = promisify(execFile);

/** A block of a page that is a whole program: it begins with its imports, after comments. */
interface Shown {
  /** The page and the line, as a file name. */
  readonly name: string;
  readonly text: string;
}

function shown(language: string): Shown[] {
  return PAGES.flatMap((page) => {
    const text = readFileSync(join(ROOT, page), "utf8");
    const blocks = text.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\``, "gm"));
    return [...blocks].flatMap(({ 1: block = "", index }) => {
      const line = text.slice(0, index).split("\n").length;
      const name = `${page.replace(/\W+/g, "_")}_line_${line}`;
      return /^(?:(?:\/\/|#).*\n)*(?:import|from) /.test(block) ? [{ name, text: block }] : [];
    });
  });
}

let folder: string;
beforeAll(() => {
  // In the project, where programs find their packages.
  folder = mkdtempSync(join(ROOT, "node_modules/.programs-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

it("every program in TypeScript type-checks", async () => {
  const programs = shown("ts");
  expect(programs.length).toBeGreaterThan(5);
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  for (const { name, text } of programs) {
    const own = join(folder, name);
    // The service whose types a client takes.
    if (text.includes('"./service.ts"')) {
      const example = text.includes("Digits") ? "digits" : "summarizer";
      cpSync(join(ROOT, "examples", example), own, { recursive: true });
    } else {
      mkdirSync(own);
    }
    writeFileSync(join(own, "program.ts"), text);
  }
  // A page may show how something is made, and use it in the next block.
  const options = { noUnusedLocals: false };
  const tsconfig = {
    extends: join(ROOT, "tsconfig.json"),
    compilerOptions: options,
    include: ["*/program.ts"],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(tsconfig));
  await run(process.execPath, [TSC, "-p", folder]).catch((err) => expect.fail(err.stdout));
});

const withoutPython = leftOut(pythonMissing);

it.skipIf(withoutPython)(
  `every program in Python type-checks${withoutPython}`,
  async () => {
    // Those with stubs of gRPC need these made first (test/e2e/clients/stubs.test.ts runs them).
    const programs = shown("python").filter(({ text }) => !text.includes("_pb2"));
    expect(programs.length).toBeGreaterThan(5);
    const { python } = await environment({
      name: "programs",
      packages: ["anyio>=4", "httpx>=0.27,<1", "mypy>=1.15", "pydantic>=2"],
    });
    for (const { name, text } of programs) {
      const own = join(folder, `python_${name}`);
      mkdirSync(own, { recursive: true });
      const isService = text.startsWith("# service.py");
      writeFileSync(join(own, isService ? "service.py" : "program.py"), text);
      const [, imported] = /from service import (\w+)/.exec(text) ?? [];
      if (imported !== undefined) {
        const service = programs.find(
          ({ text }) => text.startsWith("# service.py") && text.includes(`class ${imported}`),
        );
        writeFileSync(join(own, "service.py"), service?.text ?? "");
      }
      const env = { ...process.env, MYPYPATH: join(ROOT, "clients/python/src") };
      const cache = join(ROOT, "node_modules/.cache/mypy");
      const mypy = ["-m", "mypy", "--cache-dir", cache, "--ignore-missing-imports", "."];
      await run(python, mypy, { cwd: own, env }).catch((err) =>
        expect.fail(`${name}:\n${err.stdout}`),
      );
    }
  },
  240_000,
);

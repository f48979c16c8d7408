import { describe, expect, it } from "vitest";
import { innermost, stackIn } from "../../src/console/app/pages/tasks/stack.ts";

const V8 = `predict failed: TypeError: no readings
    at lookUp (model.ts:8:9)
    at node:internal/timers:585:17
    at async fetchAll (/data/artifacts/1/node_modules/got/index.js:3:12)
    at async Weather.predict (service.ts:22:16)
caused by: Error: deeper
    at model.ts:2:1`;

const PYTHON = `read failed: no
Traceback (most recent call last):
  File "service.py", line 8, in read
    return self.parse(text)
           ^^^^^^^^^^^^^^^^
  File "/env/lib/python3.11/site-packages/yaml/__init__.py", line 125, in load
    return loader.get_single_data()
  File "parts/parse.py", line 3, in parse
    raise ValueError(text)
ValueError: no`;

describe("a stack trace", () => {
  it("of V8 has the author's frames apart from those of libraries", () => {
    const parts = stackIn(V8);
    expect(parts.map((part) => (part.kind === "library" ? part.frames.length : part.kind))).toEqual(
      ["own", 2, "own", "text", "own"],
    );
    expect(innermost(parts, V8)).toMatchObject({ kind: "own", place: "model.ts:8:9" });
  });

  it("of a function that calls itself has its frame once, with how often", () => {
    const text = `Error: no\n    at a.ts:1:1\n${"    at deep (a.ts:3:9)\n".repeat(500)}    at a.ts:9:1`;
    expect(stackIn(text)).toEqual([
      { kind: "own", text: "at a.ts:1:1", place: "a.ts:1:1" },
      { kind: "own", text: "at deep (a.ts:3:9)", place: "a.ts:3:9", times: 500 },
      { kind: "own", text: "at a.ts:9:1", place: "a.ts:9:1" },
    ]);
  });

  it("of Python has them with their source, and the innermost last", () => {
    const parts = stackIn(PYTHON);
    expect(parts).toEqual([
      {
        kind: "own",
        text: 'File "service.py", line 8, in read\n    return self.parse(text)',
        place: "service.py:8",
      },
      {
        kind: "library",
        frames: [
          'File "/env/lib/python3.11/site-packages/yaml/__init__.py", line 125, in load\n    return loader.get_single_data()',
        ],
      },
      {
        kind: "own",
        text: 'File "parts/parse.py", line 3, in parse\n    raise ValueError(text)',
        place: "parts/parse.py:3",
      },
      { kind: "text", text: "ValueError: no" },
    ]);
    expect(innermost(parts, PYTHON)).toMatchObject({ kind: "own", place: "parts/parse.py:3" });
  });

  it("is none where no frame is", () => {
    expect(stackIn("out of memory: it had 512 MiB\nthe end")).toEqual([]);
    expect(innermost([], "")).toBeUndefined();
  });

  it("of 500 frames of libraries is one part", () => {
    const frame = "    at run (/usr/lib/node_modules/a/index.js:1:1)\n";
    expect(stackIn(`Error: no\n${frame.repeat(500)}`)).toHaveLength(1);
  });
});

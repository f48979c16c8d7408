import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";

const FOLDER = "dist/console/app";

/** What the whole console may take on the wire, in any encoding that it is sent in. */
const MAX_BYTES = 350_000;

describe("the built console", () => {
  const assets = readdirSync(`${FOLDER}/assets`);
  const isText = (name: string) => /\.(?:js|css|svg)$/.test(name);

  it.each(["br", "gz"])("has less than 350 kB with all its pages, as %s", (encoding) => {
    // A text that fits into a packet is sent as it is.
    const sentAs = (name: string) =>
      existsSync(`${FOLDER}/assets/${name}.${encoding}`) ? `${name}.${encoding}` : name;
    const sent = assets.filter(isText).map((name) => `assets/${sentAs(name)}`);
    expect(sent.filter((name) => name.endsWith(encoding)).length).toBeGreaterThan(10);
    const others = assets.filter((name) => !isText(name) && !/\.(?:br|gz)$/.test(name));
    const all = ["index.html", ...sent, ...others.map((name) => `assets/${name}`)];
    const bytes = all.map((name) => statSync(`${FOLDER}/${name}`).size);
    expect(sent.length).toBeGreaterThan(10);
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MAX_BYTES);
  });
});

describe("the built page of a deployment", () => {
  const folder = "dist/console/playground";
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => readFileSync(`${parentPath}/${name}`));

  it("has less than 120 kB with all its files, as they are sent", () => {
    const bytes = files.map((content) => gzipSync(content).length);
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(120_000);
  });

  it("has nothing of the console's routes", () => {
    expect(files.length).toBe(4);
    expect(files.some((content) => content.includes("/o/$organization"))).toBe(false);
  });
});

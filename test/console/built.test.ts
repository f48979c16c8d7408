import { readdirSync, statSync } from "node:fs";
import { describe, expect, it } from "vitest";

const FOLDER = "dist/console/app";

/** What the whole console may take on the wire, in any encoding that it is sent in. */
const MAX_BYTES = 350_000;

describe("the built console", () => {
  const assets = readdirSync(`${FOLDER}/assets`);
  const isText = (name: string) => /\.(?:js|css|svg)$/.test(name);

  it.each(["br", "gz"])("has less than 350 kB with all its pages, as %s", (encoding) => {
    const sent = assets.filter(isText).map((name) => `assets/${name}.${encoding}`);
    const others = assets.filter((name) => !isText(name) && !/\.(?:br|gz)$/.test(name));
    const all = ["index.html", ...sent, ...others.map((name) => `assets/${name}`)];
    const bytes = all.map((name) => statSync(`${FOLDER}/${name}`).size);
    expect(sent.length).toBeGreaterThan(10);
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MAX_BYTES);
  });
});

import { gunzipSync } from "node:zlib";
import Fastify from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serveAssets } from "../../../src/server/pages/assets.ts";
import { playground } from "../../../src/server/pages/playground.ts";

describe("the page's files", () => {
  const app = Fastify();
  beforeAll(async () => {
    await app.register(playground);
  });
  afterAll(() => app.close());

  it("are served with their content types", async () => {
    const contentTypeOf = async (url: string) =>
      (await app.inject(url)).headers["content-type"]?.split(";")[0];
    expect(await contentTypeOf("/")).toBe("text/html");
    expect(await contentTypeOf("/assets/playground.js")).toBe("text/javascript");
    expect(await contentTypeOf("/assets/playground.css")).toBe("text/css");
    expect(await contentTypeOf("/assets/favicon.svg")).toBe("image/svg+xml");
  });

  it("allow nothing from elsewhere", async () => {
    const { headers, body } = await app.inject("/");
    expect(headers["content-security-policy"]).toContain("default-src 'none'");
    expect(headers["content-security-policy"]).not.toContain("unsafe");
    expect(headers["x-content-type-options"]).toBe("nosniff");
    expect(headers["referrer-policy"]).toBe("no-referrer");
    expect(body).not.toMatch(/https?:\/\//);
    expect(body).not.toMatch(/ style=| on[a-z]+=/);
  });

  it("are not sent again to who has them", async () => {
    const { headers } = await app.inject("/assets/playground.js");
    expect(headers.etag).toMatch(/^W\/"[\w-]{43}"$/);
    expect(headers["cache-control"]).toBe("no-cache");
    const again = await app.inject({
      url: "/assets/playground.js",
      headers: { "if-none-match": `"other", ${headers.etag}` },
    });
    expect(again.statusCode).toBe(304);
    expect(again.body).toBe("");
  });

  it("are compressed for who takes that", async () => {
    const get = (coding?: string) =>
      app.inject({
        url: "/assets/playground.js",
        headers: coding ? { "accept-encoding": coding } : {},
      });
    const plain = await get();
    expect(plain.headers).toMatchObject({ vary: "accept-encoding" });
    for (const coding of ["gzip, deflate, br", "br;q=1.0, *;q=0.5", "GZIP"]) {
      const { headers, rawPayload } = await get(coding);
      expect(headers).toMatchObject({ "content-encoding": "gzip", etag: plain.headers.etag });
      expect(gunzipSync(rawPayload).toString()).toBe(plain.body);
    }
    for (const coding of ["br", "gzip;q=0, identity", "*; q=0.0"]) {
      const { headers, body } = await get(coding);
      expect(headers).not.toHaveProperty("content-encoding");
      expect(body).toBe(plain.body);
    }
  });

  it("that nobody has built say how they are", async () => {
    const folder = new URL("nothing/", import.meta.url);
    await expect(serveAssets(Fastify(), folder, () => [])).rejects.toThrow(
      /^the files of a page are not in .*nothing\/: run npm run build$/,
    );
  });

  it("are those of the page and no others", async () => {
    expect((await app.inject("/assets/tsconfig.json")).statusCode).toBe(404);
    expect((await app.inject("/assets/../playground.ts")).statusCode).toBe(404);
  });
});

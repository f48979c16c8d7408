/** Mounted servers whose requests and WebSockets are bounded by their keys. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { request } from "node:http";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Served, serveFile } from "./served.ts";

let served: Served;
beforeAll(async () => {
  const service = new URL("../../fixtures/services/serve/keyed-mounts.ts", import.meta.url);
  served = await serveFile(fileURLToPath(service));
});
afterAll(() => served.stop());

const get = (path: string, key: string) =>
  fetch(served.origin + path, { headers: { "tessera-key": key } });

it("refuses requests of a key beyond those that it may have under way, and beyond its rate", async () => {
  const held = get("/held", "ada");
  let others = 0;
  await expect.poll(async () => (await get("/is-held", `${others++}`)).json()).toBe(true);
  const refused = await get("/", "ada");
  expect(refused.status).toBe(429);
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(await refused.text()).toContain("KEY_LIMITED");
  expect((await get("/open", "bob")).status).toBe(200);
  expect(await (await held).text()).toBe("/held");
  let status = 200;
  while (status === 200) {
    ({ status } = await get("/", "ada"));
  }
  const spent = await get("/", "ada");
  expect(spent.status).toBe(429);
  expect(spent.headers.get("ratelimit-policy")).toBe('"key";q=3;w=86400');
});

/** Asks for a WebSocket; `end` ends it. */
async function open(key: string) {
  const req = request(`${served.origin}/talk`, {
    headers: {
      ...{ connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
      ...{ "sec-websocket-key": randomBytes(16).toString("base64"), "tessera-key": key },
    },
  });
  req.end();
  const [res, socket] = await Promise.race([once(req, "upgrade"), once(req, "response")]);
  return { status: res.statusCode, end: () => (socket ?? res).destroy() };
}

it("refuses a WebSocket of a key that has one, until that has ended", async () => {
  const first = await open("ada");
  const refused = await open("ada");
  const other = await open("bob");
  expect([first.status, refused.status, other.status]).toEqual([101, 429, 101]);
  first.end();
  const again = async () => {
    const { status, end } = await open("ada");
    end();
    return status;
  };
  await expect.poll(again).toBe(101);
  other.end();
});

/** What a platform asks of every request before it looks who sent it. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { Folder, type Platform, start } from "./platform.ts";

let folder: Folder;
let platform: Platform;
beforeAll(async () => {
  folder = new Folder();
  platform = await start(folder);
});
afterAll(async () => {
  await platform[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

it.each(["/api/v1/auth:signIn", "/tessera.v1.AuthService/SignIn"])(
  "deeply nested JSON is a malformed body at %s",
  async (path) => {
    const deep = `{"email":${"[".repeat(50_000)}${"]".repeat(50_000)}}`;
    const headers = { "content-type": "application/json" };
    const res = await fetch(platform.url + path, { method: "POST", headers, body: deep });
    expect(await res.text()).toContain("BODY_MALFORMED");
    expect(res.status).toBe(400);
  },
);

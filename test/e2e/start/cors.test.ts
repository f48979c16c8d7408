/** Pages of other origins on a platform: they may call deployments, and nothing of the platform's own. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call } from "../hosting/world.ts";
import { bearer, Folder, PASSWORD, type Platform, start } from "./platform.ts";

const APP = "https://app.example";
const PAGE = { origin: APP, "sec-fetch-site": "cross-site" };
const ASKING = { origin: APP, "access-control-request-method": "POST" };

describe("a platform that names the origin of an app", () => {
  let folder: Folder;
  let platform: Platform;
  let cookie: Record<string, string>;
  beforeAll(async () => {
    folder = new Folder();
    platform = await start(folder, { env: { TESSERA_CORS: `${APP}, https://other.example/` } });
    cookie = await platform.setUp();
  });
  afterAll(async () => {
    await platform[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  const preflight = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await fetch(platform.url + path, {
      method: "OPTIONS",
      headers: { ...ASKING, ...headers },
    });
    return { status: answer.status, origin: answer.headers.get("access-control-allow-origin") };
  };

  it("answers for deployments, by their host and by the header that names them", async () => {
    const byHost = await call(platform, "summarizer", "/summarize", {
      method: "OPTIONS",
      headers: ASKING,
    });
    expect(byHost.status).toBe(204);
    expect(byHost.headers["access-control-allow-origin"]).toBe(APP);
    const names = { "access-control-request-headers": "content-type, tessera-deployment" };
    expect(await preflight("/summarize", names)).toEqual({ status: 204, origin: APP });
    const refused = await platform.call(
      "/summarize",
      {},
      { ...PAGE, "tessera-deployment": "acme/none" },
    );
    expect(refused.status).toBe(401);
    expect(refused.headers.get("access-control-allow-origin")).toBe(APP);
  });

  it("says nothing of its own paths to pages of the app", async () => {
    const { value } = await platform.createToken(cookie);
    for (const path of ["/api/v1/tokens", "/api/v1/auth:signIn", "/", "/metrics"]) {
      expect((await preflight(path)).origin, path).toBeNull();
    }
    const answer = await platform.call("/api/v1/me", undefined, { ...PAGE, ...bearer(value) });
    expect(answer.headers.has("access-control-allow-origin")).toBe(false);
  });

  it("says nothing of them to a page that names a deployment, too", async () => {
    const named = { ...PAGE, "tessera-deployment": "acme/summarizer" };
    const asks = { "access-control-request-headers": "authorization, tessera-deployment" };
    for (const path of [
      "/api/v1/tokens",
      "/api/v1/%74okens?page_size=1",
      "/api/v1/auth:signIn",
      "/api/v1/me",
      "/tessera.v1.TokenService/ListTokens",
      "/tessera.v1.%54okenService/ListTokens",
    ]) {
      expect((await preflight(path, asks)).origin, path).toBeNull();
      const { headers } = await platform.call(path, undefined, named);
      expect(headers.has("access-control-allow-origin"), path).toBe(false);
    }
    for (const path of [
      "/api/v1/tasks",
      "/api/v1/endpoints",
      "/tessera.v1.TaskService/GetTask",
      "/tessera.v1.EndpointService/CallEndpoint",
      "/summarize/submit",
    ]) {
      expect(await preflight(path, asks), path).toEqual({ status: 204, origin: APP });
    }
  });

  it("never serves them with a session, whatever they name", async () => {
    const headers = { ...PAGE, "tessera-deployment": "acme/summarizer" };
    const made = await platform.call(
      "/api/v1/tokens",
      { name: "stolen" },
      { ...headers, ...cookie },
    );
    const credentials = { email: "ada@example.com", password: PASSWORD };
    const signed = await platform.call("/api/v1/auth:signIn", credentials, headers);
    for (const { status, headers: answered } of [made, signed]) {
      expect(status).toBe(403);
      expect(answered.has("access-control-allow-credentials")).toBe(false);
    }
  });
});

/** Whose word is taken for where a request comes from, on a machine that runs the code of others. */
import { describe, expect, it } from "vitest";
import { readStartConfig } from "../../../src/config/start.ts";
import { ConfigError } from "../../../src/config/values.ts";
import { bearer, cookieOf, Folder, PASSWORD, type Platform, start } from "./platform.ts";

const SECRET = "a secret of the proxy's";
const HERE = { TESSERA_TRUSTED_PROXIES: "127.0.0.1", TESSERA_PROXY_SECRET: SECRET };
const FORWARDED = { "x-forwarded-for": "203.0.113.7" };
const PROXY = { "tessera-proxy-secret": SECRET };

/** A token that is bound to a network which only forwarded addresses are in. */
async function boundToken(platform: Platform): Promise<Record<string, string>> {
  const fields = { allowed_networks: ["203.0.113.0/24"] };
  return bearer((await platform.createToken(await platform.setUp(), fields)).value);
}

describe("a proxy on this machine", () => {
  it.each(["127.0.0.1", "::1", "127.0.0.0/8", "0.0.0.0/0", "::/0", "10.0.0.1,::ffff:127.0.0.1"])(
    "is not trusted by its address alone, which deployments have, too: %s",
    (networks) => {
      const read = () => readStartConfig({}, { TESSERA_TRUSTED_PROXIES: networks });
      expect(read).toThrow(ConfigError);
      expect(read).toThrow("TESSERA_PROXY_SECRET");
      const env = { TESSERA_TRUSTED_PROXIES: networks, TESSERA_PROXY_SECRET: SECRET };
      expect(() => readStartConfig({}, env)).not.toThrow();
    },
  );

  it("is believed with its secret, and nobody is without", async () => {
    using folder = new Folder();
    await using platform = await start(folder, { env: HERE });
    const token = await boundToken(platform);
    const whoIs = (headers: Record<string, string>) => platform.whoIs({ ...token, ...headers });
    expect(await whoIs({ ...FORWARDED, ...PROXY })).toBe(200);
    expect(await whoIs(FORWARDED)).toBe(401);
    expect(await whoIs({ ...FORWARDED, "tessera-proxy-secret": `${SECRET}x` })).toBe(401);
    expect(await whoIs({ ...FORWARDED, "tessera-proxy-secret": "" })).toBe(401);
    expect(await whoIs(PROXY)).toBe(401);
  });

  it("does not pass on what a deployment says, which connects to the proxy from this machine, too", async () => {
    using folder = new Folder();
    await using platform = await start(folder, { env: HERE });
    const token = await boundToken(platform);
    const passedOn = { ...PROXY, "x-forwarded-for": "203.0.113.7, 127.0.0.1" };
    expect(await platform.whoIs({ ...token, ...passedOn })).toBe(401);
  });

  it("says which host was asked, and nobody says so without the secret", async () => {
    using folder = new Folder();
    await using platform = await start(folder, { env: HERE });
    const cookie = await platform.setUp();
    const app = { ...cookie, "x-forwarded-host": "summarizer.acme.apps.localhost" };
    expect((await platform.call("/api/v1/me", undefined, app)).status).toBe(200);
    expect((await platform.call("/api/v1/me", undefined, { ...app, ...PROXY })).status).toBe(404);
  });

  it("that has TLS makes sessions for https alone, whatever the public URL is", async () => {
    using folder = new Folder();
    await using platform = await start(folder, { env: HERE });
    await platform.setUp();
    const tls = { ...PROXY, "x-forwarded-proto": "https" };
    const credentials = { email: "ada@example.com", password: PASSWORD };
    const signedIn = await platform.call("/api/v1/auth:signIn", credentials, tls);
    const [cookie] = signedIn.headers.getSetCookie();
    expect(cookie).toMatch(/^__Host-tessera_session=\w{43}; Path=\/; .*; Secure$/);
    const session = cookieOf(signedIn);
    expect(await platform.whoIs({ ...session, ...tls })).toBe(200);
    expect(await platform.whoIs(session)).toBe(401);
    expect(await platform.whoIs({ ...session, "x-forwarded-proto": "https" })).toBe(401);
    const inTheClear = cookieOf(await platform.signIn("ada@example.com"));
    expect(await platform.whoIs({ ...inTheClear, ...tls })).toBe(401);
    const signedOut = await platform.call("/api/v1/auth:signOut", {}, { ...session, ...tls });
    expect(signedOut.headers.getSetCookie()[0]).toMatch(/^__Host-tessera_session=;/);
    expect(await platform.whoIs({ ...session, ...tls })).toBe(401);
  });
});

describe("the secret of a proxy", () => {
  it("is refused without a proxy to trust, and when it can be guessed or sent by no header", () => {
    const read = (secret: string, networks = "10.0.0.0/8") =>
      readStartConfig({}, { TESSERA_PROXY_SECRET: secret, TESSERA_TRUSTED_PROXIES: networks });
    expect(() => read(SECRET, "")).toThrow("--trusted-proxies");
    expect(() => read("short")).toThrow("16");
    expect(() => read("sixteen characters\n")).toThrow("TESSERA_PROXY_SECRET");
    expect(() => read("short")).not.toThrow("short");
    const { config, secrets } = read(SECRET);
    expect(secrets.proxySecret).toBe(SECRET);
    expect(JSON.stringify(config)).not.toContain(SECRET);
  });
});

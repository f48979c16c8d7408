/** The sessions of a person, as they see and end them. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AuthService } from "../../../gen/tessera/v1/auth_pb.js";
import { DATABASES } from "../../server/rpc/databases.ts";
import { type PlatformAnswer, TestPlatform } from "../../server/rpc/platform.ts";
import { newCompany, newMember, PASSWORD, type Person } from "../../server/rpc/world.ts";

const { signIn, listSessions, endSession, endOtherSessions, getCurrentPrincipal } =
  AuthService.method;

const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

interface Listed {
  readonly sessionId: string;
  readonly current?: boolean;
  readonly client?: string;
  readonly address?: string;
  readonly createdAt: string;
  readonly lastUsedAt?: string;
  readonly expiresAt: string;
}

describe.each(DATABASES)("a person's sessions on $database", ({ open }) => {
  let platform: TestPlatform;
  let ada: Person;
  beforeAll(async () => {
    platform = await TestPlatform.start(await open());
  });
  afterAll(() => platform[Symbol.asyncDispose]());
  beforeEach(async () => {
    ada = (await newCompany(platform)).admin;
  });

  const enter = async (email: string, userAgent = FIREFOX, address = "192.0.2.77") => {
    const headers = { "user-agent": userAgent };
    const answer = await platform.call(signIn, { email, password: PASSWORD }, { headers, address });
    return { cookie: answer.headers.getSetCookie()[0]?.split(";")[0] ?? "" };
  };
  const list = async (headers: Readonly<Record<string, string>>): Promise<Listed[]> => {
    const { body } = await platform.call(listSessions, {}, { headers });
    return body.sessions;
  };
  const isIn = async (headers: Readonly<Record<string, string>>) =>
    (await platform.call(getCurrentPrincipal, {}, { headers })).outcome === "ok";
  const end = (sessionId: string, headers: Readonly<Record<string, string>>) =>
    platform.call(endSession, { sessionId }, { headers });
  const cookies = ({ headers }: PlatformAnswer) => headers.getSetCookie();

  it("are listed, with what signed in from where, and which one asks", async () => {
    const headers = await enter(ada.email);
    const [newest, first, ...others] = await list(headers);
    expect(others).toEqual([]);
    expect(newest).toMatchObject({
      current: true,
      client: "Firefox 140 on Linux",
      sessionId: expect.any(String),
      createdAt: expect.any(String),
      expiresAt: expect.any(String),
    });
    expect(first).not.toHaveProperty("current");
    const seen = await list(ada.headers);
    expect(seen.map(({ current }) => current ?? false)).toEqual([false, true]);
  });

  it("show no byte of a hostile User-Agent", async () => {
    const headers = await enter(ada.email, "<script>alert(1)</script>");
    const [newest] = await list(headers);
    expect(newest).toMatchObject({ current: true });
    expect(newest).not.toHaveProperty("client");
  });

  it("come in pages", async () => {
    const headers = await enter(ada.email);
    const page = async (pageToken: string) =>
      (await platform.call(listSessions, { pageSize: 1, pageToken }, { headers })).body;
    const first = await page("");
    const second = await page(first.nextPageToken);
    const idsOf = (sessions: readonly Listed[]) => sessions.map(({ sessionId }) => sessionId);
    expect(idsOf([...first.sessions, ...second.sessions])).toEqual(idsOf(await list(headers)));
    expect(second).not.toHaveProperty("nextPageToken");
    const refused = await platform.call(listSessions, { pageToken: "x" }, { headers });
    expect(refused.outcome).toBe("REQUEST_INVALID");
  });

  it("end one by one, at once", async () => {
    const lost = await enter(ada.email);
    const [{ sessionId } = { sessionId: "" }] = await list(lost);
    expect(await isIn(lost)).toBe(true);
    const ended = await end(sessionId, ada.headers);
    expect(ended.outcome).toBe("ok");
    expect(cookies(ended)).toEqual([]);
    expect(await isIn(lost)).toBe(false);
    expect(await isIn(ada.headers)).toBe(true);
    expect((await end(sessionId, ada.headers)).outcome).toBe("SESSION_NOT_FOUND");
  });

  it("end with the cookie, if it is the one that asks", async () => {
    const headers = await enter(ada.email);
    const [own] = await list(headers);
    expect(cookies(await end(own?.sessionId ?? "", headers))).toEqual([
      expect.stringContaining("__Host-tessera_session=;"),
    ]);
    expect(await isIn(headers)).toBe(false);
  });

  it("end for nobody else, whatever the id", async () => {
    const { organizationId } = await newCompany(platform);
    const eve = await newMember(platform, { organizationId });
    const [own] = await list(ada.headers);
    for (const id of [own?.sessionId ?? "", "", "x", "\0", "x".repeat(100)]) {
      expect((await end(id, eve.headers)).outcome).toBe("SESSION_NOT_FOUND");
    }
    expect((await end("x".repeat(101), eve.headers)).outcome).toBe("REQUEST_INVALID");
    expect(await isIn(ada.headers)).toBe(true);
  });

  it("end together, but for the one that asks", async () => {
    const [one, two] = [await enter(ada.email), await enter(ada.email)];
    const endOthers = () => platform.call(endOtherSessions, {}, { headers: two });
    expect((await endOthers()).body).toEqual({ endedSessions: 2 });
    expect(await isIn(one)).toBe(false);
    expect(await isIn(ada.headers)).toBe(false);
    expect(await isIn(two)).toBe(true);
    expect((await endOthers()).body).toEqual({});
  });

  it("are also resources of the REST API", async () => {
    const { headers } = ada;
    const lost = await enter(ada.email);
    const { body } = await platform.rest("GET", "/api/v1/auth/sessions", undefined, { headers });
    const [{ session_id: id }] = body.sessions;
    const path = `/api/v1/auth/sessions/${id}`;
    expect((await platform.rest("DELETE", path, undefined, { headers })).status).toBe(200);
    expect(await isIn(lost)).toBe(false);
    const others = "/api/v1/auth/sessions:endOthers";
    expect((await platform.rest("POST", others, {}, { headers })).status).toBe(200);
  });
});

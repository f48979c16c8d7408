import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { Health, HealthCheckResponse_ServingStatus } from "../../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { AuthService } from "../../gen/tessera/v1/auth_pb.js";
import { TokenAccess, TokenKind, TokenService } from "../../gen/tessera/v1/token_pb.js";
import { openSqlite } from "../storage/sqlite/databases.ts";
import { TestPlatform, violatedFields } from "./rpc/platform.ts";
import { type Company, newCompany, newToken, PASSWORD } from "./rpc/world.ts";

let platform: TestPlatform;
let company: Company;
beforeAll(async () => {
  platform = await TestPlatform.start(await openSqlite(":memory:"));
});
afterAll(() => platform[Symbol.asyncDispose]());
beforeEach(async () => {
  company = await newCompany(platform);
});

const FACES: readonly (readonly [string, () => Transport])[] = [
  ["gRPC", () => createGrpcTransport({ baseUrl: platform.origin })],
  ["gRPC-Web", () => createGrpcWebTransport({ baseUrl: platform.origin, httpVersion: "1.1" })],
  ["Connect", () => createConnectTransport({ baseUrl: platform.origin, httpVersion: "1.1" })],
  [
    "Connect JSON",
    () =>
      createConnectTransport({
        baseUrl: platform.origin,
        httpVersion: "1.1",
        useBinaryFormat: false,
      }),
  ],
];

async function reasonOf(call: Promise<unknown>): Promise<string | undefined> {
  const err = ConnectError.from(await call.catch((thrown: unknown) => thrown));
  return err.findDetails(ErrorInfoSchema)[0]?.reason;
}

describe.each(FACES)("%s", (_, transportOf) => {
  it("passes on the cookie of a session, and takes it back", async () => {
    const auth = createClient(AuthService, transportOf());
    let cookie = "";
    await auth.signIn(
      { email: company.admin.email, password: PASSWORD },
      {
        onHeader(headers) {
          cookie = headers.getSetCookie()[0] ?? "";
        },
      },
    );
    expect(cookie).toMatch(/^__Host-tessera_session=\w{43}; .*HttpOnly/);
    const headers = { cookie: cookie.split(";")[0] ?? "" };
    expect((await auth.getCurrentPrincipal({}, { headers })).email).toBe(company.admin.email);
    await auth.signOut({}, { headers });
    expect(await reasonOf(auth.getCurrentPrincipal({}, { headers }))).toBe("TOKEN_INVALID");
  });

  it("manages tokens with a token", async () => {
    const { kind, userId } = { kind: "personal", userId: company.admin.userId } as const;
    const { headers } = await newToken(platform, company, { kind, userId });
    const tokens = createClient(TokenService, transportOf());
    const { token, value } = await tokens.createToken(
      {
        name: "made",
        kind: TokenKind.ORGANIZATION,
        access: [TokenAccess.DEVELOPER_OPERATIONS],
        expiresAt: timestampFromMs(platform.now() + 60_000),
      },
      { headers },
    );
    const tokenId = token?.tokenId ?? "";
    expect(value).toContain(token?.hint);
    const updateMask = create(FieldMaskSchema, { paths: ["description"] });
    const changed = { tokenId, description: "changed" };
    const updated = await tokens.updateToken({ token: changed, updateMask }, { headers });
    expect(updated).toMatchObject({ description: "changed", name: "made", version: 2 });
    const wrong = create(FieldMaskSchema, { paths: ["hint"] });
    const refused = tokens.updateToken({ token: changed, updateMask: wrong }, { headers });
    expect(await reasonOf(refused)).toBe("REQUEST_INVALID");
    expect(await reasonOf(tokens.revealToken({ tokenId }, { headers }))).toBe("SIGN_IN_REQUIRED");
    expect(await reasonOf(tokens.getToken({ tokenId }))).toBe("TOKEN_MISSING");
    await tokens.deleteToken({ tokenId }, { headers });
    expect(await reasonOf(tokens.getToken({ tokenId }, { headers }))).toBe("TOKEN_NOT_FOUND");
  });
});

describe("REST", () => {
  it("passes on the cookie of a session", async () => {
    const { email } = company.admin;
    const signedIn = await platform.rest("POST", "/api/v1/auth:signIn", {
      email,
      password: PASSWORD,
    });
    const [cookie = ""] = signedIn.headers.getSetCookie();
    const headers = { cookie: cookie.split(";")[0] ?? "" };
    expect((await platform.rest("GET", "/api/v1/me", undefined, { headers })).body).toMatchObject({
      kind: "session",
      organizations: [{ name: company.name, role: "admin" }],
    });
  });

  it("takes masks in the spelling of its fields, and in that of protobuf", async () => {
    const { headers } = company.admin;
    const { tokenId } = await newToken(platform, company, { name: "a", description: "b" });
    for (const mask of ["expires_at,description", "expiresAt,description"]) {
      const path = `/api/v1/tokens/${tokenId}?update_mask=${encodeURIComponent(mask)}`;
      const body = { description: mask, expires_at: "2098-01-01T00:00:00Z", name: "ignored" };
      const answer = await platform.rest("PATCH", path, body, { headers });
      expect(answer.body, answer.text).toMatchObject({ name: "a", description: mask });
    }
    const path = `/api/v1/tokens/${tokenId}?update_mask=all_the_rest`;
    const refused = await platform.rest("PATCH", path, { name: "b" }, { headers });
    expect(refused.outcome).toBe("REQUEST_INVALID");
    expect(refused.body.message).toContain("all_the_rest");
    expect(violatedFields(refused)).toEqual(["update_mask"]);
  });

  it("refuses who may not call before it has read the body", async () => {
    const res = await fetch(`${platform.origin}/api/v1/tokens`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer nonsense" },
      body: "this is not JSON",
    });
    expect(res.status).toBe(401);
    expect(res.headers.get("www-authenticate")).toContain("Bearer");
  });
});

describe("a bad credential", () => {
  it("is refused in one way, whatever is wrong with its token", async () => {
    const { value } = await newToken(platform, company);
    const { value: expired } = await newToken(platform, company, { expiresAtMs: 1 });
    const bad = [
      `Bearer ${value.slice(0, -1)}`,
      `Bearer ${value}x`,
      `Bearer ghp_${value.slice(5)}`,
      `Bearer ${expired}`,
      `Bearer ${"x".repeat(8_000)}`,
    ];
    const answers = await Promise.all(
      bad.map((authorization) =>
        platform.rest("GET", "/api/v1/tokens", undefined, {
          headers: { authorization, "x-request-id": "the-same" },
        }),
      ),
    );
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(answers[0]).toMatchObject({ status: 401, outcome: "TOKEN_INVALID" });
  });

  it("of 10 MB is not read", async () => {
    const headers = { authorization: `Bearer ${"x".repeat(10_000_000)}` };
    const answer = fetch(`${platform.origin}/api/v1/me`, { headers });
    const status = await answer.then((res) => res.status).catch(() => "closed");
    expect([431, "closed"]).toContain(status);
    expect((await platform.rest("GET", "/livez")).status).toBe(200);
  });
});

it("health and descriptors are public", async () => {
  const transport = createGrpcTransport({ baseUrl: platform.origin });
  const headers = { authorization: "Bearer nonsense", cookie: "tessera_session=nonsense" };
  const { status } = await createClient(Health, transport).check({}, { headers });
  expect(status).toBe(HealthCheckResponse_ServingStatus.SERVING);
  const reflection = createClient(ServerReflection, transport);
  async function* questions() {
    yield { messageRequest: { case: "listServices" as const, value: "" } };
  }
  for await (const { messageResponse } of reflection.serverReflectionInfo(questions())) {
    const names =
      messageResponse.case === "listServicesResponse" ? messageResponse.value.service : [];
    expect(names.map(({ name }) => name)).toContain("tessera.v1.TokenService");
  }
});

it("no secret is in the log or in an error", () => {
  expect(platform.leaks()).toEqual([]);
});

import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type {
  DeploymentService,
  WatchDeploymentsRequestJson,
} from "../../gen/tessera/v1/deployment_pb.js";
import { isMissing, isSignedOut, isTransient } from "../../src/console/app/api/errors.ts";
import { watch } from "../../src/console/app/api/stream.ts";
import { problem } from "../../src/errors.ts";
import { DATABASES } from "../server/rpc/databases.ts";
import { TestPlatform } from "../server/rpc/platform.ts";
import { newCompany, newDeployment, newToken } from "../server/rpc/world.ts";

describe("a stream of the console", () => {
  let platform: TestPlatform;
  let headers: Record<string, string>;
  let name: string;
  beforeAll(async () => {
    platform = await TestPlatform.start(await (DATABASES[0]?.open() ?? Promise.reject()));
    const company = await newCompany(platform);
    ({ headers } = await newToken(platform, company));
    name = await newDeployment(platform, company);
    const { fetch } = globalThis;
    // A page's paths are those of its own host, and the browser adds who it is.
    vi.stubGlobal("fetch", (path: string, init: RequestInit) =>
      fetch(platform.origin + path, { ...init, headers: { ...init.headers, ...headers } }),
    );
  });
  afterAll(async () => {
    vi.unstubAllGlobals();
    await platform[Symbol.asyncDispose]();
  });
  beforeEach(() => vi.restoreAllMocks());

  const onOpen = vi.fn();
  const follow = (request: WatchDeploymentsRequestJson = {}) =>
    watch<typeof DeploymentService.method.watchDeployments>(
      "/tessera.v1.DeploymentService/WatchDeployments",
      request,
      { signal: new AbortController().signal, onOpen },
    );

  const failureOf = (request?: WatchDeploymentsRequestJson) =>
    follow(request)
      .next()
      .catch((err: unknown) => err);

  it("yields messages, and ends", async () => {
    const messages = [];
    for await (const message of follow({ followFor: "0.001s" })) {
      messages.push(message);
    }
    expect(messages).toMatchObject([{ deployments: [{ name }] }]);
    expect(onOpen).toHaveBeenCalledOnce();
  });

  it("fails for a moment when the server cannot read", async () => {
    const away = problem("STORAGE_UNAVAILABLE", "the database is away");
    vi.spyOn(platform.accounts, "listDeployments").mockRejectedValue(away);
    const err = await failureOf();
    expect(err).toMatchObject({ message: "the database is away", reason: "STORAGE_UNAVAILABLE" });
    expect(isTransient(err)).toBe(true);
  });

  it("says that something is not there", async () => {
    const err = await failureOf({ deployment: "nothing" });
    expect(isMissing(err)).toBe(true);
    expect(isTransient(err)).toBe(false);
  });

  it("says that nobody is signed in any more", async () => {
    headers = {};
    const err = await failureOf();
    expect(isSignedOut(err)).toBe(true);
    expect(isTransient(err)).toBe(false);
  });
});

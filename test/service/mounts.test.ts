import { describe, expect, it } from "vitest";
import type { MountManifest } from "../../src/protocol/manifest.ts";
import { ArgumentsReader } from "../../src/service/input/arguments.ts";
import {
  calledEndpoints,
  isKeptForTask,
  mountAt,
  mountTask,
  takersOf,
} from "../../src/service/mounts.ts";
import { openApiDocument } from "../../src/service/openapi/document.ts";
import { endpoint } from "./manifests.ts";

const queue = {
  ...{ timeoutMs: 600_000, headers: ["x-tenant"], retentionMs: 1_000, queueLimit: 10 },
  ...{ priority: 0, retries: { max: 0, backoffMs: 0 } },
};
const queued: MountManifest = { path: "/ui", timeoutMs: 1_000, concurrency: 7, queue };
const plain: MountManifest = { path: "/", timeoutMs: 1_000, concurrency: 9 };
const service = { name: "shop", endpoints: [endpoint({ name: "go" })], mounts: [plain, queued] };

describe("a mounted server", () => {
  it("takes slots by its path, as a task endpoint where its requests may be tasks", () => {
    expect(takersOf(service).map(({ name, kind }) => [name, kind])).toEqual([
      ["go", "api"],
      ["/", "api"],
      ["/ui", "task"],
    ]);
    expect(calledEndpoints(service).map(({ name }) => name)).toEqual(["go", "/ui"]);
    expect(mountTask(queued)).toBe(mountTask(queued));
    expect(mountTask(queued)).toMatchObject({ concurrency: 7, timeoutMs: 600_000 });
  });

  it.each([
    ["/ui/../items", "/"],
    ["/items/../ui/x", "/ui"],
    ["/ui/./x", "/ui"],
    ["/ui/..", "/"],
    ["/../../ui", "/ui"],
    ["/ui/.hidden", "/ui"],
    ["/ui/...", "/ui"],
    ["/ui..", "/"],
  ])("answers at the path that its dots lead to: %s", (path, expected) => {
    expect(mountAt(service, path)?.path).toBe(expected);
  });

  it("has arguments that are a request, without what the platform says itself", () => {
    const reader = new ArgumentsReader(
      mountTask(queued) as NonNullable<ReturnType<typeof mountTask>>,
    );
    const read = (value: object) => () =>
      reader.read({ case: "arguments", value: value as never }, undefined as never);
    const good = { method: "GET", path: "/ui?a=%20é".replace("é", "\u00e9"), headers: { a: "b" } };
    expect(read(good)()).toMatchObject({ json: JSON.stringify(good) });
    for (const wrong of [
      {},
      { ...good, method: "CONNECT" },
      { ...good, path: `//${"a".repeat(9_000)}` },
      { ...good, path: "/a#b" },
      { ...good, path: "http://other/" },
      { ...good, path: "/" },
      { ...good, path: "/admin" },
      { ...good, path: "/uis" },
      { ...good, path: "/u/ui" },
      { ...good, path: "/ui/../admin" },
      { ...good, path: "/ui/%2e%2E?a" },
      { ...good, path: "/ui/x/." },
      { ...good, headers: { "X-Upper": "a" } },
      { ...good, headers: { "transfer-encoding": "chunked" } },
      { ...good, headers: { "proxy-authorization": "x" } },
      { ...good, headers: { traceparent: "x" } },
      { ...good, headers: { a: "☃" } },
      { ...good, more: 1 },
    ]) {
      expect(read(wrong)).toThrow(/ui: argument/);
    }
    for (const right of ["/ui/.hidden", "/ui/a..b", "/ui?x=/../y"]) {
      expect(read({ ...good, path: right })()).toBeDefined();
    }
    expect(["x-tenant", "tessera-caller", "host", "x_forwarded_for"].map(isKeptForTask)).toEqual([
      ...[true, false, false, false],
    ]);
  });

  it.each([
    ["/", "/any?x=1", "/"],
    ["/v1.0", "/v1.0", "/v1.0/a", "/v1.0?a"],
    ["/grüße/($)", "/gr%C3%BC%C3%9Fe/($)/a"],
  ])("takes tasks for its own paths alone: those of %s", (path, ...own) => {
    const { input } = mountTask({ ...queued, path }) ?? {};
    const { pattern } = (input as { properties: { path: { pattern: string } } }).properties.path;
    expect(own.filter((each) => !new RegExp(pattern, "u").test(each))).toEqual([]);
    expect(new RegExp(pattern, "u").test("/v1x0/a")).toBe(path === "/");
  });

  it("has the paths of its tasks in OpenAPI, below those of endpoints", () => {
    const { paths, tags } = openApiDocument(service, { version: "1", authorization: true });
    const described = paths as Record<string, Record<string, { operationId: string }>>;
    expect(Object.keys(described).filter((path) => path.startsWith("/ui"))).toEqual([
      ...["submit", "status", "get", "arguments", "cancel", "retry", "access", "events"].map(
        (verb) => `/ui/${verb}`,
      ),
    ]);
    expect(described["/ui/submit"]?.post?.operationId).toBe("server-1.submit");
    expect(described["/status"]).toBeUndefined();
    expect((tags as { name: string }[]).map(({ name }) => name)).toContain(
      "tasks of the server at /ui",
    );
  });
});

import type { DescService } from "@bufbuild/protobuf";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { AuthService } from "../../../gen/tessera/v1/auth_pb.js";
import { DeploymentService } from "../../../gen/tessera/v1/deployment_pb.js";
import { EndpointService } from "../../../gen/tessera/v1/endpoint_pb.js";
import { OrganizationService } from "../../../gen/tessera/v1/organization_pb.js";
import { TaskService } from "../../../gen/tessera/v1/task_pb.js";
import { TokenService } from "../../../gen/tessera/v1/token_pb.js";
import { durationPattern } from "../../../src/api/openapi/texts.ts";
import { platformDocument } from "../../../src/api/openapi/writer.ts";

const SERVICES: readonly DescService[] = [
  ...[AuthService, DeploymentService, EndpointService],
  ...[OrganizationService, TaskService, TokenService],
];

// biome-ignore lint/suspicious/noExplicitAny: a document, looked into by tests
const document: any = platformDocument(SERVICES, { version: "1", sessionCookie: "session" });

// biome-ignore lint/suspicious/noExplicitAny: operations of many shapes
const operations: any[] = Object.values(document.paths).flatMap((path) =>
  Object.values(path as object),
);

/** What the body of an operation has to be. */
function bodyOf(path: string, method = "post"): (value: unknown) => boolean {
  const ajv = new Ajv2020({ strict: false, logger: false });
  formats.default(ajv);
  const { schema } = document.paths[path][method].requestBody.content["application/json"];
  const validate = ajv.compile({ ...schema, components: document.components });
  return (value) => validate(value);
}

describe("the document of the platform", () => {
  it("has one path for each shape, and no dot in the name of a parameter", () => {
    const paths = Object.keys(document.paths);
    const shapes = paths.map((path) => path.replaceAll(/\{[^}]+\}/g, "{}"));
    expect(new Set(shapes).size).toBe(paths.length);
    expect(Object.keys(document.paths["/api/v1/deployments/{deployment}"]).sort()).toEqual([
      ...["delete", "get", "patch"],
    ]);
    const names = operations.flatMap(({ parameters }) =>
      parameters.map(({ name }: { name: string }) => name),
    );
    expect(names.filter((name: string) => name.includes("."))).toEqual([]);
  });

  it("names each variable of a path as the path does", () => {
    for (const [path, methods] of Object.entries<object>(document.paths)) {
      const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name);
      for (const { parameters } of Object.values(methods)) {
        const names = parameters
          .filter((one: { in: string }) => one.in === "path")
          .map(({ name }: { name: string }) => name);
        expect(names, path).toEqual(inPath);
      }
    }
  });

  it("has 400, 404, 429, 500, 503 and default in every operation, and 413 and 415 for a body", () => {
    for (const { operationId, responses, requestBody } of operations) {
      const statuses = Object.keys(responses);
      const always = ["400", "404", "429", "500", "503", "default"];
      const wanted = requestBody ? [...always, "413", "415"] : always;
      expect(statuses, operationId).toEqual(expect.arrayContaining(wanted));
    }
  });

  it("has patterns that JavaScript reads with the flag that JSON Schema asks for", () => {
    const patterns: string[] = [];
    JSON.stringify(document, (key, value) => {
      if (key === "pattern" && typeof value === "string") {
        patterns.push(value);
      }
      return value;
    });
    expect(patterns.length).toBeGreaterThan(20);
    for (const pattern of patterns) {
      expect(() => new RegExp(pattern, "u"), pattern).not.toThrow();
      expect(pattern).not.toMatch(/\(\?[a-z]+[:)]|\\[AzZ]/);
    }
  });
});

describe("a body in it", () => {
  it("needs what the rules refuse when it is empty, and takes no other fields", () => {
    const takes = bodyOf("/api/v1/deployments/{deployment}/revisions");
    expect(takes({ index: "AAAA" })).toBe(true);
    expect(takes({})).toBe(false);
    expect(takes({ index: "" })).toBe(false);
    expect(takes({ index: "not base64" })).toBe(false);
    expect(takes({ index: "AAAA", more: 1 })).toBe(false);
  });

  it("has the limits of numbers, lists, maps and their keys", () => {
    const takes = bodyOf("/api/v1/deployments/{deployment}/revisions");
    const withSettings = (settings: object) => takes({ index: "AAAA", settings });
    expect(withSettings({ min_workers: 0, max_workers: 100 })).toBe(true);
    expect(withSettings({ max_workers: 0 })).toBe(false);
    expect(withSettings({ cpu: 0.05 })).toBe(false);
    expect(withSettings({ env: { NAME: "value" } })).toBe(true);
    expect(withSettings({ env: { "1": "value" } })).toBe(false);
    expect(withSettings({ network: { access: "unspecified" } })).toBe(false);
    expect(withSettings({ network: { access: "none" } })).toBe(true);
    expect(withSettings({ network: {} })).toBe(false);
  });

  it("has at most one member of a oneof", () => {
    const takes = bodyOf("/api/v1/tasks");
    expect(takes({ endpoint: "work" })).toBe(true);
    expect(takes({ endpoint: "work", arguments: {} })).toBe(true);
    expect(takes({ endpoint: "work", body: {} })).toBe(true);
    expect(takes({ endpoint: "work", arguments: {}, body: {} })).toBe(false);
    expect(takes({ endpoint: "work", priority: 101 })).toBe(false);
  });

  it("of an update needs no field", () => {
    const takes = bodyOf("/api/v1/tokens/{token_id}", "patch");
    expect(takes({})).toBe(true);
    expect(takes({ name: "" })).toBe(false);
  });
});

describe("the pattern of durations", () => {
  it.each([
    [60, ["0s", "9s", "59.999s", "60s", "60.0s"], ["61s", "60.1s", "100s", "-1s", "1"]],
    [2_592_000, ["2591999.9s", "2592000s"], ["2592001s", "2600000s", "3000000s", "2592000.5s"]],
  ])("has %d as its limit", (limit, within, beyond) => {
    const pattern = new RegExp(durationPattern(limit), "u");
    expect(within.filter((text) => !pattern.test(text))).toEqual([]);
    expect(beyond.filter((text) => pattern.test(text))).toEqual([]);
  });
});

import { globSync, readFileSync } from "node:fs";
import { type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { http } from "../../gen/google/api/annotations_pb.js";
import { AlertService } from "../../gen/tessera/v1/alert_pb.js";
import { AuthService } from "../../gen/tessera/v1/auth_pb.js";
import { DeploymentService } from "../../gen/tessera/v1/deployment_pb.js";
import { EndpointService } from "../../gen/tessera/v1/endpoint_pb.js";
import { LoginService } from "../../gen/tessera/v1/login_pb.js";
import { MetricsService } from "../../gen/tessera/v1/metrics_pb.js";
import { ModelService } from "../../gen/tessera/v1/model_pb.js";
import { OperatorService } from "../../gen/tessera/v1/operator_pb.js";
import { OrganizationService } from "../../gen/tessera/v1/organization_pb.js";
import { OrganizationTaskService } from "../../gen/tessera/v1/organization_task_pb.js";
import { TaskService } from "../../gen/tessera/v1/task_pb.js";
import { TokenService } from "../../gen/tessera/v1/token_pb.js";
import { UsageService } from "../../gen/tessera/v1/usage_pb.js";
import { WebhookService } from "../../gen/tessera/v1/webhook_pb.js";

/** The clients of src/console/app/api/clients.ts. */
const SERVICES = {
  alerts: AlertService,
  auth: AuthService,
  deployments: DeploymentService,
  endpoints: EndpointService,
  logins: LoginService,
  metrics: MetricsService,
  models: ModelService,
  operator: OperatorService,
  organizations: OrganizationService,
  organizationTasks: OrganizationTaskService,
  tasks: TaskService,
  tokens: TokenService,
  usage: UsageService,
  webhooks: WebhookService,
} as const;

const CALL =
  /\b(alerts|auth|deployments|endpoints|logins|metrics|models|operator|organizations|organizationTasks|tasks|tokens|usage|webhooks)\.([a-z]\w+)\(/g;

/** A path of a stream. */
const STREAM = /"\/tessera\.v1\.(\w+)\/(\w+)"/g;

/** The paths of streams in the source of the console, as service and method. */
function streams(): readonly (readonly [service: string, method: string])[] {
  return globSync("src/console/app/**/*.{ts,tsx}").flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(STREAM)].map(
      ([, service = "", method = ""]) => [service, method] as const,
    ),
  );
}

/** The calls in the source of the console, such as `tokens.createToken`. */
function calls(): readonly (readonly [client: keyof typeof SERVICES, method: string])[] {
  const found = new Map<string, readonly [keyof typeof SERVICES, string]>();
  for (const file of globSync("src/console/app/**/*.{ts,tsx}")) {
    for (const [call, client = "", method = ""] of readFileSync(file, "utf8").matchAll(CALL)) {
      if (client in SERVICES && !(method in Array.prototype)) {
        found.set(call, [client as keyof typeof SERVICES, method]);
      }
    }
  }
  return [...found.values()];
}

/** A path without the names of its variables, which the document shortens. */
const shapeOf = (path: string): string => path.replace(/\{[^}]*\}/g, "{}");

describe("what the console does", () => {
  const paths = JSON.parse(readFileSync("docs/openapi.json", "utf8")).paths as object;

  const expectDocumented = (method: DescMethod | undefined): void => {
    expect(method, "a method of the service").toBeDefined();
    if (method !== undefined) {
      expect(hasOption(method, http)).toBe(true);
      const { pattern } = getOption(method, http);
      expect(Object.keys(paths).map(shapeOf)).toContain(shapeOf(String(pattern.value)));
    }
  };

  it("is read from its source", () => {
    expect(calls()).toContainEqual(["tokens", "createToken"]);
  });

  it.each(calls())("is in the documented API: %s.%s", (client, method) => {
    const found = SERVICES[client].methods.find(({ localName }) => localName === method);
    expectDocumented(found);
  });

  it("is read from its source: streams", () => {
    expect(streams()).toContainEqual(["DeploymentService", "WatchDeployments"]);
  });

  it.each(streams())("is in the documented API: the stream %s/%s", (service, method) => {
    const found = Object.values(SERVICES)
      .find(({ typeName }) => typeName === `tessera.v1.${service}`)
      ?.methods.find(({ name }) => name === method);
    expect(found?.methodKind).toBe("server_streaming");
    expectDocumented(found);
  });

  it("needs no path but those of the API, of sign-ins and of its own files", () => {
    const fetched = globSync("src/console/app/**/*.{ts,tsx}").flatMap((file) =>
      [...readFileSync(file, "utf8").matchAll(/\b(?:fetch|EventSource)\(/g)].map(() => file),
    );
    expect(fetched.toSorted()).toEqual([
      // The ways to sign in, before there is anybody to ask for, the document of the API, and
      // whether the server is alive.
      "src/console/app/api/get-json.ts",
      // Whether the server answers, where a part of the console did not come.
      "src/console/app/api/loaded.ts",
      "src/console/app/api/rpc.ts",
      // The paths of an endpoint, in the document of its deployment.
      "src/console/app/api/send.ts",
      "src/console/app/api/stream.ts",
    ]);
  });
});

import { expect, it } from "vitest";
import { DeploymentService } from "../../gen/tessera/v1/deployment_pb.js";
import { EndpointService } from "../../gen/tessera/v1/endpoint_pb.js";
import { MetricsService } from "../../gen/tessera/v1/metrics_pb.js";
import { TaskService } from "../../gen/tessera/v1/task_pb.js";

/** They are for no deployment, or for one that is not there yet. */
const OF_NONE = [
  "CreateDeployment",
  "ListDeployments",
  "FindMissingFiles",
  "LockSystemPackages",
  "LockImage",
  "UploadFile",
];

it("names a deployment in the field deployment, in every request that is for one", () => {
  const methods = [DeploymentService, EndpointService, MetricsService, TaskService].flatMap(
    (one) => one.methods,
  );
  const named = methods.filter(({ name }) => !OF_NONE.includes(name));
  expect(named.length).toBeGreaterThan(15);
  for (const { name, input } of named) {
    const names = input.fields.map((field) => field.name);
    expect(names, name).toContain("deployment");
    expect(names, name).not.toContain("name");
  }
});

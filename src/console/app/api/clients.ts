/** The services of the public API that the console calls. */
import type { AuthService } from "../../../../gen/tessera/v1/auth_pb.js";
import type { DeploymentService } from "../../../../gen/tessera/v1/deployment_pb.js";
import type { EndpointService } from "../../../../gen/tessera/v1/endpoint_pb.js";
import type { LoginService } from "../../../../gen/tessera/v1/login_pb.js";
import type { MetricsService } from "../../../../gen/tessera/v1/metrics_pb.js";
import type { OperatorService } from "../../../../gen/tessera/v1/operator_pb.js";
import type { OrganizationService } from "../../../../gen/tessera/v1/organization_pb.js";
import type { OrganizationTaskService } from "../../../../gen/tessera/v1/organization_task_pb.js";
import type { TaskService } from "../../../../gen/tessera/v1/task_pb.js";
import type { TokenService } from "../../../../gen/tessera/v1/token_pb.js";
import { createClient } from "./rpc.ts";

export const auth = createClient<typeof AuthService>("tessera.v1.AuthService");
export const deployments = createClient<typeof DeploymentService>("tessera.v1.DeploymentService");
export const endpoints = createClient<typeof EndpointService>("tessera.v1.EndpointService");
export const logins = createClient<typeof LoginService>("tessera.v1.LoginService");
export const metrics = createClient<typeof MetricsService>("tessera.v1.MetricsService");
export const operator = createClient<typeof OperatorService>("tessera.v1.OperatorService");
export const organizations = createClient<typeof OrganizationService>(
  "tessera.v1.OrganizationService",
);
export const organizationTasks = createClient<typeof OrganizationTaskService>(
  "tessera.v1.OrganizationTaskService",
);
export const tasks = createClient<typeof TaskService>("tessera.v1.TaskService");
export const tokens = createClient<typeof TokenService>("tessera.v1.TokenService");

/**
 * What methods check beyond the rules of the proto files, as JSON Schema by the full name of a
 * field or a message; the limits are those that they check with. Formats that JSON Schema does
 * not know are named after what they are.
 */
import { DNS_LABEL, RESERVED } from "../../auth/names.ts";
import { PASSWORD_CHARACTERS } from "../../auth/passwords.ts";
import {
  MAX_TOKEN_DEPLOYMENTS,
  MAX_TOKEN_DESCRIPTION_CHARACTERS,
  MAX_TOKEN_NAME_CHARACTERS,
  MAX_TOKEN_NETWORKS,
} from "../../auth/token-rules.ts";
import { MIN_WORKER_MEMORY_BYTES } from "../../pool/limits.ts";
import type { JsonSchema } from "../../protocol/manifest.ts";
import { UNIT_NAME } from "../../protocol/units.ts";
import { CHANGEABLE as OF_DEPLOYMENT } from "../deployment/update.ts";
import { CHALLENGE } from "../login/request.ts";
import { CHANGEABLE as OF_ORGANIZATION } from "../organization/organization.ts";
import {
  MAX_DELAY_DAYS,
  MAX_PRIORITY,
  MAX_START_BY_DAYS,
  MAX_TAG_CHARACTERS,
  MAX_TAGS,
} from "../task/submit.ts";
import { CHANGEABLE as OF_TOKEN } from "../token/fields.ts";
import { durationPattern } from "./texts.ts";

/** A day. */
const DAY_SECONDS = 86_400;
/** A MiB. */
const MIB_BYTES = 1024 ** 2;

const NAME: JsonSchema = { pattern: DNS_LABEL.source };
const NEW_ORGANIZATION: JsonSchema = {
  ...NAME,
  not: { anyOf: [{ enum: [...RESERVED] }, { pattern: "^xn--" }] },
};
const EMAIL: JsonSchema = { format: "email" };
const CURRENT: JsonSchema = { format: "password" };
/** What people read before they consent has no invisible characters. */
const HOST_NAME: JsonSchema = { format: "visible-text" };
const NEW_PASSWORD: JsonSchema = {
  minLength: PASSWORD_CHARACTERS.min,
  maxLength: PASSWORD_CHARACTERS.max,
  format: "password",
};
const PAGE_TOKEN: JsonSchema = { format: "page-token" };
const NO_NUL = "^[^\\u0000]*$";
const CONTROL = "\\u0000-\\u001f\\u007f-\\u009f";
/** Text without control characters that has something else than spaces. */
const TITLE = `^[^${CONTROL}]*[^\\s${CONTROL}][^${CONTROL}]*$`;
/** No commas and no control characters, and no space at its beginning or its end. */
const TAG = `^[^\\s,${CONTROL}](?:[^,${CONTROL}]*[^\\s,${CONTROL}])?$`;
const DISPLAY_NAME: JsonSchema = { pattern: `^[^${CONTROL}]*$` };

const mask = (changeable: readonly string[]): JsonSchema => {
  const name = `(?:${changeable.map((one) => one.replaceAll(".", "\\.")).join("|")})`;
  return { pattern: `^(?:\\*|${name}(?:,${name})*)?$`, examples: [changeable[0]] };
};

const TOKEN_FIELDS: { readonly [field: string]: JsonSchema } = {
  name: { minLength: 1, maxLength: MAX_TOKEN_NAME_CHARACTERS, pattern: TITLE },
  description: { maxLength: MAX_TOKEN_DESCRIPTION_CHARACTERS },
  access: { minItems: 1 },
  deployments: {
    maxItems: MAX_TOKEN_DEPLOYMENTS,
    uniqueItems: true,
    items: NAME,
  },
  allowed_networks: {
    maxItems: MAX_TOKEN_NETWORKS,
    items: { format: "ip-network" },
  },
};

const NOTHING_ELSE: JsonSchema = {
  all_deployments: { not: { const: true } },
  deployments: { maxItems: 0 },
};

/** Which deployments a token is for depends on what it gives access to. */
const TOKEN: JsonSchema = {
  anyOf: [
    { properties: { access: { items: { const: "developer_operations" } }, ...NOTHING_ELSE } },
    {
      properties: {
        access: { items: { const: "monitoring" } },
        kind: { const: "organization" },
        ...NOTHING_ELSE,
      },
      required: ["kind"],
    },
    {
      properties: {
        access: {
          items: { enum: ["protected_endpoint", "developer_operations"] },
          contains: { const: "protected_endpoint" },
        },
      },
      oneOf: [
        {
          properties: { all_deployments: { const: true }, deployments: { maxItems: 0 } },
          required: ["all_deployments"],
        },
        {
          properties: { all_deployments: { not: { const: true } }, deployments: { minItems: 1 } },
          required: ["deployments"],
        },
      ],
    },
  ],
};

const TAGS: JsonSchema = {
  maxItems: MAX_TAGS,
  uniqueItems: true,
  items: { minLength: 1, maxLength: MAX_TAG_CHARACTERS, pattern: TAG },
};

const SCHEDULE: { readonly [field: string]: JsonSchema } = {
  priority: { minimum: -MAX_PRIORITY, maximum: MAX_PRIORITY },
  delay: { pattern: durationPattern(MAX_DELAY_DAYS * DAY_SECONDS) },
  start_within: { pattern: durationPattern(MAX_START_BY_DAYS * DAY_SECONDS) },
  tags: TAGS,
  // One of two ways to say the same time.
  "": {
    not: { anyOf: [{ required: ["run_at", "delay"] }, { required: ["start_by", "start_within"] }] },
  },
};

/** A resource in the request that creates it: what it must have, and the form of its name. */
const created = (resource: string, required: readonly string[]): JsonSchema => ({
  allOf: [{ properties: { [resource]: { properties: { name: NAME }, required: [...required] } } }],
});

const VARIABLES: JsonSchema = { additionalProperties: { pattern: NO_NUL } };

const CHECKED: { readonly [message: string]: { readonly [field: string]: JsonSchema } } = {
  SetUpRequest: {
    organization: NEW_ORGANIZATION,
    email: EMAIL,
    display_name: DISPLAY_NAME,
    password: NEW_PASSWORD,
  },
  SignInRequest: { password: CURRENT },
  ConfirmPasswordRequest: { password: CURRENT },
  ChangePasswordRequest: { current_password: CURRENT, new_password: NEW_PASSWORD },
  ChangeDisplayNameRequest: { display_name: DISPLAY_NAME },
  AcceptInvitationRequest: { display_name: DISPLAY_NAME, password: NEW_PASSWORD },
  AuthorizeLoginRequest: {
    redirect_uri: {
      pattern: "^http://(?:127\\.0\\.0\\.1|\\[::1\\]):[0-9]{1,4}(?:/[A-Za-z0-9/_-]*)?$",
    },
    code_challenge: { pattern: CHALLENGE.source },
    code_challenge_method: { const: "S256" },
    state: { pattern: "^[!-~]+$" },
    host_name: HOST_NAME,
  },
  StartDeviceLoginRequest: { host_name: HOST_NAME },
  Organization: { display_name: DISPLAY_NAME },
  CreateOrganizationRequest: { name: NEW_ORGANIZATION, display_name: DISPLAY_NAME },
  InviteMemberRequest: { email: EMAIL },
  UpdateOrganizationRequest: { update_mask: mask(OF_ORGANIZATION) },
  CreateTokenRequest: { ...TOKEN_FIELDS, "": TOKEN },
  Token: TOKEN_FIELDS,
  UpdateTokenRequest: { update_mask: mask(OF_TOKEN) },
  CreateDeploymentRequest: { name: NAME },
  UpdateDeploymentRequest: { update_mask: mask(OF_DEPLOYMENT) },
  CreateRevisionRequest: { deployment: NAME, secrets: VARIABLES },
  DeploymentSettings: {
    memory_mib: { minimum: MIN_WORKER_MEMORY_BYTES / MIB_BYTES },
    env: VARIABLES,
  },
  NetworkSettings: {
    hosts: { items: { format: "host-rule" } },
    "": {
      oneOf: [
        { properties: { access: { const: "allow" }, hosts: { minItems: 1 } }, required: ["hosts"] },
        { properties: { access: { enum: ["none", "open"] }, hosts: { maxItems: 0 } } },
      ],
    },
  },
  CreateAlertRuleRequest: { "": created("rule", ["name", "kind"]) },
  CreateAlertReceiverRequest: { "": created("receiver", ["name", "kind", "address"]) },
  CreateWebhookRequest: { "": created("webhook", ["name", "url"]) },
  // The amount is what a change changes as well.
  Budget: { measure: { pattern: UNIT_NAME.source }, "": { required: ["amount"] } },
  CreateBudgetRequest: { "": created("budget", ["name", "measure"]) },
  UpdateBudgetRequest: { update_mask: mask(["amount"]) },
  CreateScheduleRequest: { "": created("schedule", ["name", "endpoint", "cron"]) },
  SubmitTaskRequest: SCHEDULE,
  TaskCall: SCHEDULE,
  UpdateTaskRequest: { tags: TAGS },
  FederateRequest: { match: { items: { format: "selector" } } },
};

/**
 * What is checked of a field of a request.
 * @param field its name, or empty for what is checked of the message as a whole
 */
export function checked(message: string, field: string): JsonSchema {
  return CHECKED[message]?.[field] ?? (field === "page_token" ? PAGE_TOKEN : {});
}

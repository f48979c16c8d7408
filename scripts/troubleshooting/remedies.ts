/** What to do about each error of the catalogue: the second half of docs/troubleshooting.md. */
import type { Reason } from "../../src/errors.ts";

export const REMEDIES = {
  ARGUMENTS_INVALID:
    "Compare the arguments with the endpoint's schema, `/schema.json`. The details name each field and what is wrong with it.",
  REQUEST_INVALID: "Correct the field that the details name; [the reference](http.md) lists all.",
  BODY_MALFORMED: "Send valid JSON, or a multipart body that ends with its boundary.",
  CONTENT_TYPE_UNSUPPORTED:
    "Send `content-type: application/json`, or `multipart/form-data` where the endpoint takes files.",
  BODY_TOO_LARGE:
    "Send large data as a file, which is streamed to disk, or in several calls. The sizes are in [limits](limits.md).",
  ROUTE_NOT_FOUND:
    "Compare the path with `/docs.json` of this host. On a platform's own host, name the deployment by the header `Tessera-Deployment`.",
  METHOD_NOT_ALLOWED: "Use the method that the header `Allow` of the answer names.",
  DEPLOYMENT_NOT_FOUND:
    "Check the name with `tessera deployment list`. If it is right, the token is of another organization, or for other deployments.",
  ENDPOINT_NOT_FOUND: "Check the name against `/docs.json`; a new revision may have renamed it.",
  ENDPOINT_NOT_A_TASK: "Call it by `POST /{endpoint}`, or declare it with `task` instead of `api`.",
  TASK_NOT_FOUND:
    "Fetch results within the endpoint's `retention` (24 hours by default), from the deployment that took the task.",
  TASK_NOT_FINISHED: "Wait: `GET /{endpoint}/get?task_id=…&wait=30`, or follow `/events`.",
  TASK_CANCELLED: "Submit it again, or `/retry` it: that makes a new task with the same arguments.",
  TASK_FAILED:
    "Read the message, and the log of the attempt in the console or by `tessera deployment logs NAME --task ID`. After the mend, `/retry` it.",
  TASK_ALREADY_STARTED: "Add `abort=true` to end the running attempt, too.",
  TASK_FINISHED: "Nothing is left to cancel: fetch the result.",
  IDEMPOTENCY_KEY_REUSED: "Use a new key for each different call; repeat a call as it was written.",
  CALL_FAILED:
    "The function threw this error on purpose or by a defect: its message says which, and `tessera deployment logs` has the stack trace.",
  CALL_TIMEOUT: "Raise the endpoint's `timeout`, or make it a task and fetch the result later.",
  WORKER_LOST:
    "Look for memory in `tessera deployment logs`: a worker over its limit is ended. Raise `--memory`, or give the task `retries`. A call of an api that may run twice runs again by itself with `idempotent: true`.",
  OUTPUT_INVALID: "The service is wrong: mend the function, or its output schema.",
  RESULT_TOO_LARGE: "Return a file, or stream the result in pieces.",
  QUEUE_FULL:
    "Submit again after `Retry-After`. Add workers (`tessera deployment update NAME --workers 1..8`), or raise the endpoint's `queueLimit`.",
  KEY_LIMITED:
    "Wait for `Retry-After`, or have the endpoint allow more for each key ([limits by key](limits-by-key.md)).",
  TOO_MANY_WAITING: "Ask for the status without `wait`, or wait in fewer calls.",
  TOKEN_MISSING:
    "Send `Authorization: Bearer …` with a token (`tessera token create NAME`), or sign in. A header of another scheme, such as `Basic`, brings none. Deployments that do not exist answer this, too.",
  TOKEN_INVALID:
    "Send `Authorization: Bearer …` with a token that is neither expired nor deleted (`tessera token list`), from a network that it allows. Behind a proxy, see [client addresses](production.md#the-address-of-the-client).",
  ACCESS_DENIED:
    "Use a token with the access that the message names. In a browser, allow the page's origin by `--cors`.",
  STORAGE_UNAVAILABLE:
    "Repeat the call after `Retry-After`. Operators: `tessera admin check` tells what is wrong with the database.",
  SHUTTING_DOWN: "Repeat the call after `Retry-After`; another node, or the next start, takes it.",
  NO_WORKER:
    "Repeat the call: workers may be starting. If it stays, `tessera deployment get NAME` tells why they do not start.",
  INTERNAL:
    "Give the operator the request's id, which is in the details and in the header `X-Request-Id`: the server's log has the cause under it.",
  CALLER_GONE: "Nothing: the caller left. If it did not mean to, raise the timeout of its client.",
  SERVER_BUSY: "Repeat the call after `Retry-After`. If it stays, add a node or memory.",
  ORGANIZATION_NOT_FOUND:
    "Check the name with `tessera cloud current-context`, or ask to be invited.",
  ORGANIZATION_EXISTS: "Take another name.",
  MEMBER_NOT_FOUND: "Check the list of members: the person may have left.",
  MEMBER_EXISTS: "Change the person's role instead of inviting again.",
  LAST_ADMIN: "Make somebody else an admin first.",
  INVITATION_NOT_FOUND: "Ask for a new invitation; each works once, until it expires.",
  TOKEN_NOT_FOUND: "Check the id with `tessera token list`.",
  MONITORING_DISABLED:
    "An admin runs `tessera org ask-for-monitoring`, or asks in the console; the operator runs `tessera admin monitoring enable --organization NAME` on the machine.",
  REVEAL_DISABLED: "Create a new token, and delete this one.",
  DEPLOYMENT_EXISTS: "Take another name, or deploy a new revision of this one.",
  ADMIN_REQUIRED: "Ask an admin of the organization to do it.",
  SIGN_IN_REQUIRED:
    "Sign in with your password again, in the console or on the command line: a token does not do.",
  SIGN_IN_FAILED:
    "Check both. The operator sets a new password by `tessera admin reset-password --email …`.",
  RATE_LIMITED: "Wait for `Retry-After`. Behind a proxy, see that each client has its own address.",
  SETUP_INVALID: "Use the link that the newest start printed; it works once.",
  LOGIN_INVALID: "Begin again: `tessera cloud login`.",
  LOGIN_NOT_FOUND: "Compare the code with the one in the terminal; it expires.",
  LOGIN_PENDING: "Confirm the login in the browser; the command waits for it.",
  LOGIN_SLOW_DOWN: "Ask less often: the answer names the interval.",
  LOGIN_DENIED: "Begin again, and allow it, if it was you who began it.",
  VERSION_CONFLICT: "Read the resource again, and repeat the change on what is there now.",
  LIMIT_REACHED: "Delete what is not needed, or ask the operator for more ([limits](limits.md)).",
  ARTIFACT_INVALID: "Build and deploy with the version of the command that the platform has.",
  FILES_MISSING: "Deploy again: the command uploads what is missing.",
  REVISION_NOT_FOUND: "`tessera deployment revisions NAME` lists those that are kept.",
  NO_REVISION: "Deploy a service first: `tessera deploy service.ts --name NAME`.",
  TASKS_QUEUED: "Wait until they have ended, or add `--force`, which cancels them.",
  DEPLOYMENT_STOPPED: "`tessera deployment start NAME`.",
  DEPLOYMENT_FAILED:
    "`tessera deployment get NAME` has the reason, and `tessera deployment logs NAME` the output. Deploy a mended revision, or `rollback`.",
  OPERATOR_REQUIRED: "The operator does it on the machine, by `tessera admin`.",
  INVITATION_LINKS_DISABLED:
    "The operator sets up a mail server (`--mail-from`, `TESSERA_SMTP_URL`), or runs `tessera admin invitation-links enable`.",
  MAIL_FAILED: "Try again; the node's log has the answer of the mail server.",
  SANDBOX_UNAVAILABLE:
    "Install bubblewrap on the nodes ([the sandbox](sandbox.md#level-kernel)), or do without the setting that the message names.",
  SESSION_NOT_FOUND: "It has ended already.",
  BATCH_FAILED:
    "Find the call that made the function throw, or use `split`, the default of `onError`, which runs each call again alone.",
  TASK_RESTARTED: "Drop the pieces that came, and read the result from its beginning.",
  ENVIRONMENT_UNAVAILABLE:
    "Choose a version of Python that the nodes have, and packages that the node can reach ([Python](python-services.md)).",
  LOCK_INVALID: "Correct the requirement that the message names, and deploy again.",
  WORKER_INCOMPATIBLE: "Install the version on the worker's machine that the platform has.",
  WORKER_SESSION_EXPIRED: "The agent registers again by itself; one of your own has to.",
  WORKER_REPLACED: "Nothing: the newer connection of the worker goes on.",
  LAUNCHER_REPLACED:
    "Run one launcher for a deployment. A second one waits until the first has ended, and takes over.",
  MANIFEST_CONFLICT: "Start the worker with the code of the deployment's revision.",
  NO_MATCHING_WORKER:
    "Join a machine with these labels ([workers](workers.md#placement)), or change `--require`, which goes before the code for the same label. Tasks wait.",
  BLOB_RANGE_INVALID: "Ask for a range within the length that the answer names.",
  SCHEDULE_NOT_FOUND: "`tessera schedule list DEPLOYMENT` lists the schedules of a deployment.",
  SCHEDULE_EXISTS:
    "Choose another name, or change the one that is there: `tessera schedule update`.",
  MODEL_NOT_FOUND:
    "`tessera model list` lists the models, and `tessera model get NAME` its versions.",
  MODEL_NOT_READY:
    "Wait until it is fetched: `tessera model get NAME`. One that failed says why there; import it again.",
  MODEL_IN_USE:
    "Deploy the deployments that the message names with another version, or delete them.",
  SOURCE_REFUSED:
    "The message says what is wrong with the source. A gated repository needs the token of an account that may read it.",
  SOURCE_UNAVAILABLE: "Try again: what was stored is kept. The node's log has the details.",
  WEBHOOK_NOT_FOUND:
    "Name a webhook of the deployment (`tessera webhook list`). Deliveries are kept for three days.",
  WEBHOOK_EXISTS:
    "Change the one that is there (`tessera webhook update`), or choose another name.",
  WEBHOOK_DISABLED:
    "Read why (`tessera webhook list`), mend the receiver, and enable it (`tessera webhook update NAME --enable`).",
  ALERT_NOT_FOUND:
    "`tessera alert list` lists the rules of the organization, `tessera alert receiver list` the receivers.",
  ALERT_EXISTS: "Change the one that is there (`tessera alert update`), or choose another name.",
  ALERT_RECEIVER_IN_USE:
    "Name other receivers for the rule (`tessera alert update NAME --receiver OTHER`), or delete it.",
  MACHINE_NOT_FOUND:
    "`tessera machine list` lists the machines that have joined, and `tessera admin nodes` the nodes. A node is drained by an operator.",
  BUDGET_SPENT:
    "Wait until the time that the message names, or let an admin raise the budget: `tessera budget list`, `tessera budget update NAME AMOUNT`. What was accepted before runs.",
  BUDGET_NOT_FOUND: "`tessera budget list` lists the budgets of the organization.",
  BUDGET_EXISTS:
    "Change the one that is there (`tessera budget update NAME AMOUNT`), or choose another name.",
} as const satisfies Readonly<Record<Reason, string>>;

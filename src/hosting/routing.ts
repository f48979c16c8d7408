/**
 * Routing of requests to deployments: by host, `<app>.<organization>.<apps
 * domain>`, by the header `Tessera-Deployment`, or by the request's own field. A
 * request that names a deployment twice has to name the same one.
 *
 * Found records are cached as credentials are (`auth/lookup-cache.ts`): a change
 * event invalidates them on every node within a second, and nothing is cached while
 * the events cannot be read. So a deployment that is changed to require a token does
 * so at once.
 *
 * A deployment that the caller may not see is answered as one that does not exist.
 */
import type { ChangeFeed, Forgotten } from "../auth/change-feed.ts";
import { type Cacheable, LookupCache } from "../auth/lookup-cache.ts";
import { faultOfName } from "../auth/names.ts";
import { deploymentUnknown, seesDeployments } from "../auth/permissions.ts";
import type { Principal } from "../auth/principal.ts";
import { agreed, type CallTarget, contradiction } from "../deployments/directory.ts";
import { type Problem, problem } from "../errors.ts";
import type { DeploymentRecord, Organizations } from "../storage/accounts/organizations.ts";
import { appOf } from "./hosts.ts";

/** Names of deployments that a refusal lists. */
const MAX_NAMED_DEPLOYMENTS = 20;

interface RoutingOptions {
  readonly accounts: Pick<Organizations, "findDeployment" | "listDeployments">;
  readonly changes: ChangeFeed;
  readonly appsDomain: string;
  /** A monotonic clock in milliseconds. Default: `performance.now`. */
  readonly monotonicMs?: () => number;
}

interface Name {
  readonly organization: string;
  readonly name: string;
}

export class Routing implements Disposable {
  readonly #options: RoutingOptions;
  readonly #cache: LookupCache<Found>;
  readonly #unlisten: () => void;

  constructor(options: RoutingOptions) {
    this.#options = options;
    const { changes, monotonicMs = () => performance.now() } = options;
    this.#cache = new LookupCache({ isFresh: () => changes.isFresh(), monotonicMs });
    this.#unlisten = changes.listen((forgotten) => this.#cache.forget(forgotten));
  }

  /** True when host or header name a deployment. */
  names({ host, header }: Pick<CallTarget, "host" | "header">): boolean {
    return header !== "" || appOf(host, this.#options.appsDomain) !== undefined;
  }

  /**
   * The deployment's record; a promise only where it is not cached. Errors: see
   * `Directory.find`.
   */
  find(target: CallTarget, principal: Principal): DeploymentRecord | Promise<DeploymentRecord> {
    const text = this.#textOf(target);
    const recalled = this.#cache.recall(text);
    return recalled?.record ?? this.#ask(text, recalled === null, principal);
  }

  [Symbol.dispose](): void {
    this.#unlisten();
  }

  async #ask(text: string, isAbsent: boolean, principal: Principal): Promise<DeploymentRecord> {
    const name = parse(text);
    const found =
      isAbsent || name === undefined
        ? undefined
        : await (this.#cache.share(text) ??
            this.#cache.ask(text, async () => {
              const record = await this.#options.accounts.findDeployment(name);
              return record && new Found(record);
            }));
    if (found === undefined) {
      throw await this.#notFound(text, name, principal);
    }
    return found.record;
  }

  /** `organization/name` as the request gives it, not validated. */
  #textOf(target: CallTarget): string {
    const byName = agreed(target);
    const app = appOf(target.host, this.#options.appsDomain);
    if (app === undefined) {
      if (byName === "") {
        throw problem(
          "DEPLOYMENT_NOT_FOUND",
          "the request names no deployment: ask on its own host, or send the header Tessera-Deployment: organization/name",
        );
      }
      return byName;
    }
    const dot = app.indexOf(".");
    const byHost = `${app.slice(dot + 1)}/${app.slice(0, Math.max(dot, 0))}`;
    if (byName !== "" && byName !== byHost) {
      throw contradiction(
        `the request names deployment ${quoted(byName)}, and its host is that of ${quoted(byHost)}`,
        "contradicts the host",
      );
    }
    return byHost;
  }

  async #notFound(text: string, name: Name | undefined, principal: Principal): Promise<Problem> {
    if (name === undefined) {
      // No deployment can have such a name, so this tells nothing of any.
      return problem(
        "DEPLOYMENT_NOT_FOUND",
        `deployment ${quoted(text)} does not exist; it is named organization/name`,
      );
    }
    const organizationId = organizationOf(principal, name.organization);
    if (organizationId === undefined || !seesDeployments(principal, organizationId)) {
      return deploymentUnknown(principal, text);
    }
    const { accounts, appsDomain } = this.#options;
    const { items, next } = await accounts.listDeployments({
      organizationId,
      limit: MAX_NAMED_DEPLOYMENTS,
    });
    const names = items.map((each) => each.name).join(", ") + (next === undefined ? "" : ", …");
    const there = names === "" ? "none yet" : names;
    return problem(
      "DEPLOYMENT_NOT_FOUND",
      `organization ${name.organization} has no deployment "${name.name}"; it has: ${there} (at <name>.${name.organization}.${appsDomain})`,
    );
  }
}

/** The id of an organization that the caller belongs to, by its name. */
function organizationOf(principal: Principal, name: string): string | undefined {
  switch (principal.kind) {
    case "session":
      return principal.memberships.find(({ organization }) => organization === name)
        ?.organizationId;
    case "token":
      return principal.organization === name ? principal.organizationId : undefined;
    default:
      return undefined;
  }
}

class Found implements Cacheable {
  readonly record: DeploymentRecord;

  constructor(record: DeploymentRecord) {
    this.record = record;
  }

  dependsOn({ kind, ...forgotten }: Forgotten): boolean {
    const { deploymentId, organizationId } = this.record;
    const id = "id" in forgotten ? forgotten.id : "";
    return (
      kind === "everything" ||
      (kind === "deployment" && id === deploymentId) ||
      (kind === "organization" && id === organizationId)
    );
  }
}

/** Splits `organization/name`; undefined for an invalid name. */
function parse(text: string): Name | undefined {
  const [organization = "", name = "", ...rest] = text.split("/");
  const isName = [organization, name].every((label) => faultOfName(label) === undefined);
  return isName && rest.length === 0 ? { organization, name } : undefined;
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 127));
}

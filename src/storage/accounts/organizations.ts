/**
 * The part of the accounts port for organizations: members, invitations,
 * deployments and the audit log.
 */

import type { DeploymentSettings, SettingsUpdate } from "../deployment-settings.ts";
import type { AuditEntry } from "./audit.ts";
import type { Deed } from "./deed.ts";
import type { Page, PageQuery } from "./page.ts";
import type { NewSession, Role } from "./people.ts";

export interface OrganizationRecord {
  readonly organizationId: string;
  readonly name: string;
  readonly displayName: string;
  readonly createdAtMs: number;
  readonly monitoringEnabled: boolean;
  /** Who asked the operator for monitoring tokens, until the operator answers. */
  readonly monitoringAsked?: { readonly by: string; readonly atMs: number };
  readonly revealEnabled: boolean;
  /** Whether the operator lets its admins see links of invitations for people without an account. */
  readonly invitationLinksEnabled: boolean;
}

/** An organization as the operator sees it. */
export interface ListedOrganization extends OrganizationRecord {
  readonly members: number;
  readonly deployments: number;
}

export interface MemberRecord {
  readonly userId: string;
  readonly email: string;
  readonly displayName: string;
  readonly role: Role;
  readonly joinedAtMs: number;
}

export interface InvitationRecord {
  readonly invitationId: string;
  readonly organizationId: string;
  readonly organization: string;
  readonly email: string;
  readonly role: Role;
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  /** Whether its link was sent by mail and shown to nobody, so that it proves the address. */
  readonly mailed: boolean;
}

/**
 * Ids of the deployments whose authorization may be switched off; any other is
 * refused as `not_openable`. Undefined: all deployments.
 */
export type Openable = readonly string[] | undefined;

export type DesiredState = "running" | "stopped";

/** An endpoint whose tasks are not started. */
export interface PausedEndpoint {
  readonly endpoint: string;
  readonly pausedAtMs: number;
  readonly pausedBy: string;
}

export interface DeploymentRecord {
  readonly deploymentId: string;
  readonly organizationId: string;
  readonly organization: string;
  readonly name: string;
  readonly authorization: boolean;
  readonly createdAtMs: number;
  readonly createdBy: string;
  readonly updatedAtMs: number;
  readonly desiredState: DesiredState;
  /** The newest revision, which should serve; undefined before the first one. */
  readonly targetRevision: number | undefined;
  readonly settings: DeploymentSettings;
  /** Counts its changes, from 1. */
  readonly version: number;
  /**
   * Other than 0: variables or secrets were changed at this version by a caller who may not use
   * the secrets, and nobody has confirmed it yet. Workers have only the secrets set with it.
   */
  readonly secretsSince: number;
  /** The version at which a secret was set or removed last; 0: none was. Workers start anew for it. */
  readonly secretsVersion: number;
  /** By name; also those that the newest revision does not have. */
  readonly pausedEndpoints: readonly PausedEndpoint[];
}

export interface AuditRecord {
  readonly eventId: string;
  readonly timeMs: number;
  readonly action: string;
  readonly actor: string;
  readonly address: string;
  readonly subjectId: string;
  readonly subject: string;
  readonly details: { readonly [name: string]: string };
}

/** Which audit events are listed; a field that is undefined does not restrict them. */
export interface AuditFilter {
  readonly actor?: string | undefined;
  /** An action, or the word before its dot. */
  readonly action?: string | undefined;
  /** The id or the name of what the event is about. */
  readonly subject?: string | undefined;
  /** Only events with this id or a greater one, which are later. */
  readonly from?: string | undefined;
}

type OfOrganization = { readonly organizationId: string };

export interface Organizations {
  /** Creates an organization with its creator as admin. Without `limit` there may be any number. */
  createOrganization(
    parameters: Deed &
      OfOrganization & {
        readonly name: string;
        readonly displayName: string;
        readonly userId: string;
        /** Refused when the platform has this many organizations. */
        readonly limit?: number;
      },
  ): Promise<
    | { readonly outcome: "created"; readonly organization: OrganizationRecord }
    | { readonly outcome: "name_taken" | "limit" }
  >;

  findOrganization(
    parameters: { readonly name: string } | OfOrganization,
  ): Promise<OrganizationRecord | undefined>;

  /** All organizations by name, for the operator; `after` is a name. */
  listOrganizations(parameters: PageQuery): Promise<Page<ListedOrganization>>;

  /**
   * Undefined fields stay as they are. Switching reveal off erases every sealed
   * value of the organization. Saying whether it may have monitoring tokens
   * ends the request for them.
   */
  updateOrganization(
    parameters: Deed &
      OfOrganization & {
        readonly displayName?: string;
        readonly revealEnabled?: boolean;
        readonly monitoringEnabled?: boolean;
        readonly invitationLinksEnabled?: boolean;
      },
  ): Promise<OrganizationRecord | undefined>;

  /**
   * Notes that the organization asks for monitoring tokens. Changes nothing where
   * it has them or has asked already. Undefined: there is no such organization.
   */
  askForMonitoring(parameters: Deed & OfOrganization): Promise<OrganizationRecord | undefined>;

  /** Sorted by e-mail address; `after` is an address. */
  listMembers(parameters: PageQuery & OfOrganization): Promise<Page<MemberRecord>>;

  /** Changes a member's role. The last admin stays an admin; the transaction checks that. */
  changeRole(
    parameters: Deed & OfOrganization & { readonly userId: string; readonly role: Role },
  ): Promise<
    | { readonly outcome: "changed"; readonly member: MemberRecord }
    | { readonly outcome: "not_found" | "last_admin" }
  >;

  /**
   * Ends a membership and, in the same transaction, deletes every personal
   * token that the person has in the organization.
   */
  removeMember(
    parameters: Deed & OfOrganization & { readonly userId: string; readonly left: boolean },
  ): Promise<{ readonly outcome: "removed" | "not_found" | "last_admin" }>;

  /**
   * Invites an address; replaces its open invitation. A link that is not mailed
   * is for people who have an account, unless the organization may show links.
   */
  invite(
    parameters: Deed &
      OfOrganization & {
        readonly invitationId: string;
        readonly digest: string;
        readonly email: string;
        readonly role: Role;
        readonly expiresAtMs: number;
        /** True if the link goes by mail and is shown to nobody. Default false. */
        readonly mailed?: boolean;
        /** Refused when this many invitations are open. */
        readonly limit: number;
      },
  ): Promise<
    | { readonly outcome: "invited"; readonly invitation: InvitationRecord }
    /**
     * `links_disabled`: there is no account, and the link must not be shown.
     * `signed_out`: the actor's session or token has ended.
     */
    | { readonly outcome: "is_member" | "limit" | "links_disabled" | "signed_out" }
  >;

  /** Lists open invitations, sorted by e-mail address. */
  listInvitations(
    parameters: OfOrganization & { readonly nowMs: number; readonly limit: number },
  ): Promise<InvitationRecord[]>;

  deleteInvitation(
    parameters: Deed & OfOrganization & { readonly invitationId: string },
  ): Promise<boolean>;

  /** Finds the open invitation of a link, or the newest one for an address. */
  findInvitation(
    parameters: ({ readonly digest: string } | { readonly email: string }) & {
      readonly nowMs: number;
    },
  ): Promise<InvitationRecord | undefined>;

  /**
   * Accepts an invitation: adds the member, opens a session and ends the
   * invitation. `newUser` is for a person without an account; refused as
   * `user_exists` when one was created in the meantime.
   */
  acceptInvitation(
    parameters: Deed & {
      readonly invitationId: string;
      readonly userId: string;
      readonly newUser?: {
        readonly email: string;
        readonly displayName: string;
        readonly passwordHash?: string;
        /** Default: if the link was mailed. */
        readonly emailVerified?: boolean;
      };
      /** The hash of the password that an existing person has proved; refused if it has changed. */
      readonly currentHash?: string | undefined;
      readonly session?: NewSession;
    },
  ): Promise<{
    readonly outcome: "joined" | "not_found" | "user_exists" | "password_changed";
  }>;

  createDeployment(
    parameters: Deed &
      OfOrganization & {
        readonly deploymentId: string;
        readonly name: string;
        readonly authorization: boolean;
        /** Refused when the organization has this many. */
        readonly limit: number;
      },
  ): Promise<
    | { readonly outcome: "created"; readonly deployment: DeploymentRecord }
    | { readonly outcome: "name_taken" | "limit" }
  >;

  findDeployment(
    parameters:
      | (OfOrganization & { readonly name: string })
      | { readonly organization: string; readonly name: string },
  ): Promise<DeploymentRecord | undefined>;

  /** Sorted by name; `after` is a name. */
  listDeployments(parameters: PageQuery & OfOrganization): Promise<Page<DeploymentRecord>>;

  /** Undefined fields stay as they are. A `version` other than the current one is a conflict. */
  updateDeployment(
    parameters: Deed &
      OfOrganization & {
        readonly name: string;
        readonly authorization?: boolean;
        readonly openable?: Openable;
        /** Whether the caller may use the deployment's secrets. Default: they may not. */
        readonly usesSecrets?: boolean;
        readonly settings?: SettingsUpdate;
        readonly version?: number;
      },
  ): Promise<
    | { readonly outcome: "updated"; readonly deployment: DeploymentRecord }
    /** `workers_contradict`: `minWorkers` would exceed `maxWorkers`. */
    | { readonly outcome: "not_found" | "version_conflict" | "workers_contradict" | "not_openable" }
  >;

  /**
   * Deletes a deployment. Refused while it has unfinished tasks, unless `force`
   * is set: they are then lost.
   */
  deleteDeployment(
    parameters: Deed &
      OfOrganization & {
        readonly name: string;
        readonly force?: boolean;
        /** Its unfinished tasks that are in other databases. Default: none are. */
        readonly elsewhere?: { readonly queued: number; readonly running: number };
      },
  ): Promise<
    | { readonly outcome: "deleted"; readonly deploymentId: string }
    | { readonly outcome: "not_found" }
    | { readonly outcome: "has_tasks"; readonly queued: number; readonly running: number }
  >;

  /**
   * Lists audit events, newest first; `after` is an event's id. A page may have fewer than `limit`
   * before the last one, even none: it looks at a bounded number of events.
   */
  listAuditEvents(parameters: PageQuery & OfOrganization & AuditFilter): Promise<Page<AuditRecord>>;

  /** Appends an audit event without another change, such as for a revealed value. */
  recordAuditEvent(parameters: Deed & OfOrganization & AuditEntry): Promise<void>;
}

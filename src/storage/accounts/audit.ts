/**
 * What the audit log tells of: the closed catalogue of its actions, each the kind of what was changed
 * and what was done to it. The console has a sentence for each.
 */
export const AUDIT_ACTIONS = [
  "deployment.create",
  "deployment.deploy",
  "deployment.roll_back",
  "deployment.update",
  "deployment.update_secrets",
  "deployment.confirm_secrets",
  "deployment.start",
  "deployment.stop",
  "deployment.pause_endpoint",
  "deployment.resume_endpoint",
  "deployment.delete",
  "worker.secrets",
  "machine.drain",
  "machine.resume",
  "node.drain",
  "node.resume",
  "token.create",
  "token.update",
  "token.rotate",
  "token.reveal",
  "token.delete",
  "model.push",
  "model.import",
  "model.delete",
  "member.join",
  "member.update",
  "member.remove",
  "member.leave",
  "invitation.create",
  "invitation.delete",
  "organization.create",
  "organization.update",
  "organization.ask_for_monitoring",
  "schedule.create",
  "schedule.update",
  "schedule.run",
  "schedule.delete",
  "task.delete",
  "task.delete_all",
  "webhook.create",
  "webhook.update",
  "webhook.rotate",
  "webhook.test",
  "webhook.redeliver",
  "webhook.delete",
  "alert_rule.create",
  "alert_rule.update",
  "alert_rule.silence",
  "alert_rule.delete",
  "alert_receiver.create",
  "alert_receiver.update",
  "alert_receiver.rotate",
  "alert_receiver.test",
  "alert_receiver.redeliver",
  "alert_receiver.delete",
  "budget.create",
  "budget.update",
  "budget.delete",
  "sign_in",
  "sign_in.failed",
  "sign_out",
  "session.end",
  "login.authorize",
  "login.approve",
  "login.deny",
  "password.change",
  "email.verify",
  "identity.link",
  "display_name.change",
  "operator.grant",
  "operator.revoke",
  "keys.rotate",
] as const;

export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** What was done, to what, and with what details. */
export interface AuditEntry {
  readonly action: AuditAction;
  readonly subjectId: string;
  /** The subject's name for people: a name or an e-mail address. */
  readonly subject: string;
  readonly details?: { readonly [name: string]: string };
}

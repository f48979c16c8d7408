/** Messages about alerts in the forms of their receivers. */
import type { AlertMessage } from "../../storage/hosting/alerts.ts";

const MARKS = { "alert.firing": "🔴", "alert.cleared": "🟢", "alert.test": "🔔" } as const;

/** What has happened, in one line. */
export function alertTitle({ type, data }: AlertMessage): string {
  const { organization, rule, alerts, more } = data;
  if (type === "alert.test") {
    return `Test of ${rule} in ${organization}`;
  }
  const count = alerts.length + more;
  const about = count === 1 ? (alerts[0]?.subject ?? "") : `${count} alerts`;
  return `${type === "alert.firing" ? "Firing" : "Cleared"}: ${rule}, ${about} (${organization})`;
}

/** What is to be known of each alert, a line for each. */
export function alertLines({ data }: AlertMessage): readonly string[] {
  const { alerts, more } = data;
  return [
    ...alerts.map(({ subject, text }) => `${subject}: ${text}`),
    ...(more > 0 ? [`and ${more} more`] : []),
  ];
}

/**
 * The message as incoming webhooks of Slack take it (https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks):
 * text in which `&`, `<` and `>` are escaped.
 */
export function slackBody(message: AlertMessage): string {
  const { type, data } = message;
  const lines = [
    `${MARKS[type]} *${escaped(alertTitle(message))}*`,
    ...alertLines(message).map((line) => `• ${escaped(line)}`),
    ...(data.condition === "" ? [] : [`_${escaped(data.condition)}_`]),
    `<${data.url}|Open in Tessera>`,
  ];
  return JSON.stringify({ text: lines.join("\n") });
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

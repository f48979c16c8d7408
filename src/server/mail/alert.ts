import { alertLines, alertTitle } from "../../hosting/alerts/forms.ts";
import type { AlertMessage } from "../../storage/hosting/alerts.ts";
import { letter } from "./letter.ts";
import type { Mail } from "./mailer.ts";

/** The mail about alerts that fire, or have cleared. */
export function alertMail(to: string, message: AlertMessage): Mail {
  const { condition, url, organization } = message.data;
  return letter({ to, subject: alertTitle(message) }, [
    ...alertLines(message),
    ...(condition === "" ? [] : [`The rule: ${condition}.`]),
    { url },
    `You get this because a receiver of alerts of ${organization} has your address. Its developers can remove it.`,
  ]);
}

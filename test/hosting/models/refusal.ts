import { toProblem } from "../../../src/errors.ts";

/** The reason and the message that a promise is rejected with. */
export async function refusalOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return "not refused";
  } catch (err) {
    const { reason, rawMessage } = toProblem(err);
    return `${reason}: ${rawMessage}`;
  }
}

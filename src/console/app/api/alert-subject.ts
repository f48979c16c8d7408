/** The subjects of alerts. */

export interface AlertSubject {
  /** What kind of thing it is, such as `deployment`, `webhook` or `node`. */
  readonly what: string;
  readonly name: string;
  /** The deployment of a webhook; empty for anything else. */
  readonly of: string;
}

/** Reads such as `deployment ocr` and `webhook app of ocr`: the names of both are DNS labels. */
export function alertSubjectOf(subject: string): AlertSubject {
  const [what = "", name = "", , of = ""] = subject.split(" ");
  return { what, name, of };
}

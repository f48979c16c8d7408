/** What alerts are about, as they say it. */

export interface AlertSubject {
  /** Such as `deployment`, `webhook` or `node`. */
  readonly what: string;
  readonly name: string;
  /** The deployment of a webhook; empty for all else. */
  readonly of: string;
}

/** Reads such as `deployment ocr` and `webhook app of ocr`: the names of both are DNS labels. */
export function alertSubjectOf(subject: string): AlertSubject {
  const [what = "", name = "", , of = ""] = subject.split(" ");
  return { what, name, of };
}

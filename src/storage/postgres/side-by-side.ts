/** Two pieces of work that share a transaction for what each asks first. */
import type { BoundStatement, PostgresRow, Session } from "./session.ts";

type Work<Answer> = (session: Session) => Promise<Answer>;

interface First {
  readonly asked: readonly BoundStatement[];
  readonly answered: PromiseWithResolvers<PostgresRow[][]>;
}

/**
 * Runs both and resolves with what they return. The first question of each, which may be several
 * statements, is held back until the other has one too, and both are one transaction: one round
 * trip, one wait for the disk. What either asks later is on its own. When the transaction fails,
 * both do.
 */
export async function sideBySide<One, Other>(
  session: Session,
  one: Work<One>,
  other: Work<Other>,
): Promise<[One, Other]> {
  const firsts: (First | undefined)[] = [];
  let left = 2;
  const send = async (): Promise<void> => {
    left -= 1;
    if (left > 0) {
      return;
    }
    const asking = firsts.filter((first) => first !== undefined);
    try {
      const answers = await session.together(...asking.flatMap(({ asked }) => asked));
      let next = 0;
      for (const { asked, answered } of asking) {
        answered.resolve(answers.slice(next, next + asked.length));
        next += asked.length;
      }
    } catch (err) {
      for (const { answered } of asking) {
        answered.reject(err);
      }
    }
  };
  const joined = (place: number): Session => {
    let isFirst = true;
    const together = (...asked: readonly BoundStatement[]): Promise<PostgresRow[][]> => {
      if (!isFirst) {
        return session.together(...asked);
      }
      isFirst = false;
      const answered = Promise.withResolvers<PostgresRow[][]>();
      firsts[place] = { asked, answered };
      void send();
      return answered.promise;
    };
    return {
      together,
      query: async (...asked) =>
        isFirst ? ((await together(asked))[0] ?? []) : session.query(...asked),
      script: (text) => session.script(text),
    };
  };
  return Promise.all([one(joined(0)), other(joined(1))]);
}

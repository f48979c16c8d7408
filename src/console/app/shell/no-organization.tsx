/** For people who are in no organization yet. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { me } from "../api/session.ts";
import { Command } from "../ui/command.tsx";
import { Empty } from "../ui/empty.tsx";

export function NoOrganization() {
  const { data: person } = useSuspenseQuery(me);
  return (
    <main className="alone">
      <Empty title="You are in no organization yet">
        <p>
          An admin of one can invite {person.email}. The operator of the platform can create one:
        </p>
        <Command
          text={`npx tessera-platform admin create-organization NAME --admin ${person.email}`}
        />
      </Empty>
    </main>
  );
}

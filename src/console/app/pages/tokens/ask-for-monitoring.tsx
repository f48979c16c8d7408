/** Where monitoring tokens are not enabled: asks the operator for them, or says who has asked. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { organizations } from "../../api/clients.ts";
import { messageOf } from "../../api/errors.ts";
import { me, useOrganization, usePerson } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Time } from "../../ui/time.tsx";

export function AskForMonitoring() {
  const name = useOrganization();
  const { organization } = usePerson();
  const queryClient = useQueryClient();
  const asking = useMutation({
    mutationFn: () => organizations.askForMonitoring({ organization: name }),
    onSuccess: () => queryClient.invalidateQueries(me),
  });
  if (organization?.monitoringEnabled) {
    return null;
  }
  const { monitoringAskedAt: askedAt, monitoringAskedBy: askedBy } = organization ?? {};
  if (askedAt !== undefined) {
    return (
      <Notice kind="warning">
        <bdi>{askedBy}</bdi> asked the operator of the platform for monitoring tokens{" "}
        <Time at={askedAt} />. You can create one once they are enabled.
      </Notice>
    );
  }
  return (
    <Notice kind="warning">
      <p>
        Monitoring tokens are not enabled for {name}. The operator of the platform enables them.
      </p>
      <Button isBusy={asking.isPending} onClick={() => asking.mutate()}>
        Ask the operator
      </Button>
      {asking.error && <p className="field-error">{messageOf(asking.error)}</p>}
    </Notice>
  );
}

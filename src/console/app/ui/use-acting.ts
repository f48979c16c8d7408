/** Acts on something, says so, and has what was read of it read again. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { messageOf } from "../api/errors.ts";
import { useToast } from "./toasts.tsx";

/** `keys` are the beginnings of the keys of what is read again. */
export function useActing(...keys: readonly (readonly string[])[]) {
  const queryClient = useQueryClient();
  const toast = useToast();
  const readAgain = () =>
    Promise.all(keys.map((queryKey) => queryClient.invalidateQueries({ queryKey })));
  const { mutate: act } = useMutation({
    mutationFn: async ({ run }: { run(): Promise<unknown>; readonly said: string }) => run(),
    onSuccess: (_answer, { said }) => {
      toast(said);
      void readAgain();
    },
    onError: (err) => toast(messageOf(err)),
  });
  return { readAgain, act };
}

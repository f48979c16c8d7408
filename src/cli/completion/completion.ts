/** `tessera completion`: writes the script with which a shell completes the program's commands. */
import { Argument, Command } from "commander";
import { EXIT_CODES } from "../failure.ts";
import type { Streams } from "../terminal.ts";

/**
 * Each script hands the words up to the cursor to `tessera complete`, which answers a candidate a
 * line: the word, a tab, what it is. The line `:files` asks for names of files as well.
 */
const SCRIPTS: Readonly<Record<string, string>> = {
  // Bash splits words at "=": they are put together again, and only what follows it is replaced.
  bash: `_tessera() {
  local program="$1" word line skip=""
  local -a words=()
  local i=1
  while (( i <= COMP_CWORD )); do
    word="\${COMP_WORDS[i]}"
    if [[ "$word" == "=" && \${#words[@]} -gt 0 ]]; then
      words[\${#words[@]}-1]+="="
      if (( i < COMP_CWORD )); then
        i=$((i + 1))
        words[\${#words[@]}-1]+="\${COMP_WORDS[i]}"
      fi
    else
      words+=("$word")
    fi
    i=$((i + 1))
  done
  local last="\${words[\${#words[@]}-1]}"
  local typed="$last"
  if [[ "$last" == *=* && "$COMP_WORDBREAKS" == *=* ]]; then
    skip="\${last%%=*}="
    typed="\${last#*=}"
  fi
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ "$line" == ":files" ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r word; do
        COMPREPLY+=("$word")
      done < <(compgen -f -- "$typed")
    else
      word="\${line%%$'\\t'*}"
      COMPREPLY+=("\${word#"$skip"}")
    fi
  done < <("$program" complete -- "\${words[@]}" 2>/dev/null)
}
complete -F _tessera tessera
`,
  zsh: `#compdef tessera
_tessera() {
  local line files=0
  local -a found
  for line in "\${(@f)$("\${words[1]}" complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ "$line" == ":files" ]]; then
      files=1
    elif [[ -n "$line" ]]; then
      found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
    fi
  done
  (( \${#found} )) && _describe -V tessera found
  (( files )) && _files
}
if [[ "\${funcstack[1]}" == "_tessera" ]]; then
  _tessera "$@"
else
  compdef _tessera tessera
fi
`,
  fish: `function __tessera_complete
  set -l words (commandline -opc)
  set -l typed (commandline -ct)
  for line in (command $words[1] complete -- $words[2..] "$typed" 2>/dev/null)
    if test "$line" = ":files"
      __fish_complete_path "$typed"
    else
      echo $line
    end
  end
end
complete -c tessera -e
complete -c tessera -f -a "(__tessera_complete)"
`,
};

const INSTALLATION = `
To have it in every shell, once:
  bash  tessera completion bash > ~/.local/share/bash-completion/completions/tessera
        (needs the package bash-completion), or in ~/.bashrc:
        source <(tessera completion bash)
  zsh   tessera completion zsh > "\${fpath[1]}/_tessera", or in ~/.zshrc after compinit:
        source <(tessera completion zsh)
  fish  tessera completion fish > ~/.config/fish/completions/tessera.fish

It completes commands, flags and fixed choices; where you are logged in, also
deployments, endpoints, organizations and tasks, as far as the platform answers
within a moment.`;

export function completionCommand({ stdout }: Pick<Streams, "stdout">): Command {
  return new Command("completion")
    .description("Write the script with which a shell completes commands, flags and names.")
    .addArgument(new Argument("<shell>", "your shell").choices(Object.keys(SCRIPTS)))
    .addHelpText("after", `${INSTALLATION}\n${EXIT_CODES}`)
    .action((shell: string) => {
      stdout.write(SCRIPTS[shell] ?? "");
    });
}

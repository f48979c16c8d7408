/** `tessera completion`: writes the script with which a shell completes the program's commands. */
import { Argument, Command } from "commander";
import type { CloudActions } from "../command.ts";
import { EXIT_CODES } from "../failure.ts";

/**
 * Each script hands the words up to the cursor to `tessera complete`, which answers a candidate a
 * line: the word, a tab, what it is. The line `:files` asks for names of files as well, with what
 * stands before the name in the word, such as `:files image=@`. After a word that ends with `=`
 * the value follows, and so no space.
 */
const SCRIPTS: Readonly<Record<string, string>> = {
  // Bash splits words at "=", "@" and ":": parts without a space between them are put together
  // again, and only what bash takes for the word (its second argument) is replaced. Bash quotes
  // whole words as names of files, with the "@"; those behind one are quoted here.
  bash: `_tessera() {
  local program="$1" typed="$2" line="\${COMP_LINE:0:COMP_POINT}" bare word kept path i
  local -a words=()
  for (( i = 0; i <= COMP_CWORD; i++ )); do
    word="\${COMP_WORDS[i]}"
    bare="\${line#"\${line%%[![:space:]]*}"}"
    if (( i == COMP_CWORD )); then
      word="$bare"
    fi
    if (( i > 0 )) && [[ "$bare" == "$line" ]]; then
      words[\${#words[@]}-1]+="$word"
    else
      words+=("$word")
    fi
    line="\${bare#"$word"}"
  done
  local last="\${words[\${#words[@]}-1]}"
  local skip="\${last%"$typed"}"
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ "$line" == ":files"* ]]; then
      bare="\${line#:files}"
      bare="\${bare# }"
      kept="\${bare#"$skip"}"
      while IFS= read -r word; do
        if [[ -n "$kept" ]]; then
          printf -v path "%s%q" "$kept" "$word"
          [[ -d "$word" ]] && path+="/"
          COMPREPLY+=("$path")
        else
          COMPREPLY+=("$word")
        fi
      done < <(compgen -f -- "\${last#"$bare"}")
      if [[ -z "$kept" ]]; then
        compopt -o filenames 2>/dev/null
      fi
    else
      word="\${line%%$'\\t'*}"
      COMPREPLY+=("\${word#"$skip"}")
    fi
  done < <("$program" complete -- "\${words[@]:1}" 2>/dev/null)
  if [[ "\${COMPREPLY[0]}" == *[=/] ]]; then
    compopt -o nospace 2>/dev/null
  fi
}
complete -F _tessera tessera
`,
  zsh: `#compdef tessera
_tessera() {
  local line before files=0
  local -a found assigned
  for line in "\${(@f)$("\${words[1]}" complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ "$line" == ":files"* ]]; then
      files=1
      before="\${\${line#:files}# }"
    elif [[ "\${line%%$'\\t'*}" == *= ]]; then
      assigned+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
    elif [[ -n "$line" ]]; then
      found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
    fi
  done
  (( \${#found} )) && _describe -V tessera found
  (( \${#assigned} )) && _describe -V tessera assigned -S ''
  if (( files )); then
    compset -p \${#before}
    _files
  fi
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
    if string match -q ":files*" -- "$line"
      set -l before (string replace -r '^:files ?' '' -- "$line")
      set -l path (string sub -s (math 1 + (string length -- "$before")) -- "$typed")
      for found in (__fish_complete_path "$path")
        echo "$before$found"
      end
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

It completes commands, flags, fixed choices, and files, also behind an @. Where
you are logged in, it completes names as well (deployments, endpoints with their
arguments, tasks, revisions, tokens, members, invitations and organizations), as
far as the platform answers within a moment.`;

export function completionCommand({ streams: { stdout } }: CloudActions): Command {
  return new Command("completion")
    .description("Write the script with which a shell completes commands, flags and names.")
    .addArgument(new Argument("<shell>", "your shell").choices(Object.keys(SCRIPTS)))
    .addHelpText("after", `${INSTALLATION}\n${EXIT_CODES}`)
    .action((shell: string) => {
      stdout.write(SCRIPTS[shell] ?? "");
    });
}

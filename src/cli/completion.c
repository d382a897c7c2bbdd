// Completion scripts for bash and zsh, generated at build time from the tables of options and
// verbs. They offer only options that work.
#include <stdio.h>
#include <string.h>

#include "cli/options/check.h"
#include "cli/verbs.h"

static bool offered(const struct option *option) {
    return option->state == OPTION_WORKS && strlen(option->name) > 1;
}

static void print_tools(void) {
    const char *space = "";
    for (size_t i = 0; i < tool_count; i++) {
        if (tool_table[i]->is_planned)
            continue;
        printf("%s%s", space, tool_table[i]->name);
        if (tool_table[i]->plain_name)
            printf(" %s", tool_table[i]->plain_name);
        space = " ";
    }
}

static void print_choices(const struct option *option) {
    struct option_choice choice;
    for (size_t i = 0; option_choice_at(option, i, &choice); i++)
        printf("%s%.*s", i ? " " : "", (int)choice.size, choice.name);
}

static bool has_choices(const struct option *option) {
    return option->choices || option->offers;
}

static void print_verbs(void) {
    for (size_t i = 0; i < verb_count; i++)
        printf("%s%s", i ? " " : "", verb_table[i]->name);
}

// "--name=", "--flag" or "-o".
static void print_name(const struct option *option) {
    bool is_short = option_is_short(option);
    printf("%s%s%s", is_short ? "-" : "--", option->name,
           is_short || option->type == OPTION_FLAG ? "" : "=");
}

// ---- bash --------------------------------------------------------------------------------------

// The values of a verb's options that have choices: `export--as) ... ;;`.
static void print_bash_values(const struct verb *verb) {
    for (const struct option *option = verb->options; option && option->name; option++) {
        if (!has_choices(option))
            continue;
        printf("        %s--%s) COMPREPLY=($(compgen -W '", verb->name, option->name);
        print_choices(option);
        printf("' -- \"$word\")) ;;\n");
    }
}

static void print_bash_names(const struct verb *verb) {
    if (!verb->options)
        return;
    printf("            %s) COMPREPLY=($(compgen -W '", verb->name);
    for (const struct option *option = verb->options; option->name; option++) {
        print_name(option);
        putchar(' ');
    }
    printf("' -- \"$word\")) ;;\n");
}

// Behind a verb: its options, their values, and files.
static void print_bash_verbs(void) {
    printf("    if ((COMP_CWORD > 1)) && [[ \" ");
    print_verbs();
    printf(" \" == *\" ${COMP_WORDS[1]} \"* ]]; then\n"
           "        name=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "        [[ $word == = ]] && word=\n"
           "        [[ $name == = ]] && name=${COMP_WORDS[COMP_CWORD - 2]}\n"
           "        case ${COMP_WORDS[1]}$name in\n");
    for (size_t i = 0; i < verb_count; i++)
        print_bash_values(verb_table[i]);
    printf("        *)\n"
           "            [[ $word == -* ]] || COMPREPLY=($(compgen -f -- \"$word\"))\n"
           "            [[ $word == -* ]] && case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < verb_count; i++)
        print_bash_names(verb_table[i]);
    printf("            esac\n"
           "            [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace ;;\n"
           "        esac\n"
           "        return\n"
           "    fi\n");
}

int generate_bash_completion(void) {
    size_t count;
    const struct option *const *list = option_list(&count);
    printf("# bash completion for quern\n"
           "_quern() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} i name=\n"
           "    COMPREPLY=()\n");
    print_bash_verbs();
    printf("    # Behind the first word that is not an option, use the program's own completion.\n"
           "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
           "        case ${COMP_WORDS[i]} in\n"
           "        =) ((i++)) ;;\n"
           "        --) ((i++)); _command_offset $i; return ;;\n"
           "        -*) ;;\n"
           "        *)\n"
           "            [[ $i == 1 && \" ");
    print_tools();
    printf(" \" == *\" ${COMP_WORDS[i]} \"* ]] && continue\n"
           "            _command_offset $i\n"
           "            return ;;\n"
           "        esac\n"
           "    done\n"
           "    if [[ $word == = ]]; then\n"
           "        name=${COMP_WORDS[COMP_CWORD - 1]} word=\n"
           "    elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then\n"
           "        name=${COMP_WORDS[COMP_CWORD - 2]}\n"
           "    fi\n"
           "    case $name in\n"
           "    --tool) COMPREPLY=($(compgen -W '");
    print_tools();
    printf("' -- \"$word\")); return ;;\n");
    for (size_t i = 0; i < count; i++) {
        const struct option *option = list[i];
        if (!offered(option) || !(has_choices(option) || option->type == OPTION_FILE))
            continue;
        printf("    --%s) COMPREPLY=($(compgen ", option->name);
        if (has_choices(option)) {
            printf("-W '");
            print_choices(option);
            putchar('\'');
        } else {
            printf("-f");
        }
        printf(" -- \"$word\")); return ;;\n");
    }
    printf("    ?*) return ;;\n"
           "    esac\n"
           "    if [[ $word == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < count; i++)
        if (offered(list[i]))
            printf("--%s%s ", list[i]->name, list[i]->type == OPTION_FLAG ? "" : "=");
    printf("' -- \"$word\"))\n"
           "        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
           "        return\n"
           "    fi\n"
           "    COMPREPLY=($(compgen -c -- \"$word\") $(compgen -f -- \"$word\"))\n"
           "    ((COMP_CWORD == 1)) && COMPREPLY+=($(compgen -W '");
    print_tools();
    putchar(' ');
    print_verbs();
    printf("' -- \"$word\"))\n"
           "}\n"
           "complete -F _quern quern\n");
    return fflush(stdout) == 0 ? 0 : 1;
}

// ---- zsh ---------------------------------------------------------------------------------------

// Help text inside a zsh specification. Brackets, colons and quotes have a meaning there.
static void print_zsh_help(const char *help) {
    for (; *help; help++) {
        if (strchr("[]:\\", *help))
            putchar('\\');
        if (*help == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*help);
    }
}

// What may follow the option: `:value:(no yes)`.
static void print_zsh_value(const struct option *option) {
    if (strcmp(option->name, "tool") == 0) {
        printf(":tool:(");
        print_tools();
        putchar(')');
    } else if (has_choices(option)) {
        printf(":value:(");
        print_choices(option);
        putchar(')');
    } else if (option->type == OPTION_FILE) {
        printf(":file:_files");
    } else if (option->type != OPTION_FLAG) {
        printf(":value: ");
    }
}

// `attached` is how zsh calls a value that follows the name: "=-" in the same word only, "=" also
// in the next word.
static void print_zsh_option(const struct option *option, const char *attached) {
    bool is_short = option_is_short(option);
    printf("    '%s%s%s%s[", option->repeats || option->type == OPTION_FLAG ? "*" : "",
           is_short ? "-" : "--", option->name,
           is_short || option->type == OPTION_FLAG ? "" : attached);
    print_zsh_help(option->help);
    putchar(']');
    print_zsh_value(option);
    printf("' \\\n");
}

static void print_zsh_verb(const struct verb *verb) {
    printf("    %s) _arguments -S \\\n", verb->name);
    for (const struct option *option = verb->options; option && option->name; option++)
        print_zsh_option(option, "=");
    printf("    '*:file:_files' ;;\n");
}

int generate_zsh_completion(void) {
    size_t count;
    const struct option *const *list = option_list(&count);
    printf("#compdef quern\n"
           "if (( CURRENT > 2 )) && [[ \" ");
    print_verbs();
    printf(" \" == *\" $words[2] \"* ]]; then\n"
           "    local verb=$words[2]\n"
           "    words[2]=()\n"
           "    (( CURRENT-- ))\n"
           "    case $verb in\n");
    for (size_t i = 0; i < verb_count; i++)
        print_zsh_verb(verb_table[i]);
    printf("    esac\n"
           "    return\n"
           "fi\n"
           "if (( CURRENT > 2 )) && [[ \" ");
    print_tools();
    printf(" \" == *\" $words[2] \"* ]]; then\n"
           "    words[2]=()\n"
           "    (( CURRENT-- ))\n"
           "fi\n"
           "_arguments -S \\\n");
    for (size_t i = 0; i < count; i++)
        if (offered(list[i]))
            print_zsh_option(list[i], "=-");
    printf("    '(-):program:_command_names -e' \\\n"
           "    '*::arguments:_normal'\n");
    return fflush(stdout) == 0 ? 0 : 1;
}

// Completion scripts for bash and zsh, generated at build time from the table. Only what works is
// offered.
#include <stdio.h>
#include <string.h>

#include "cli/verbs.h"
#include "report/heap/export.h"

static bool offered(const struct option *option) {
    return option->state == OPTION_WORKS && strlen(option->name) > 1;
}

static void print_tools(void) {
    const char *space = "";
    for (size_t i = 0; i < tool_count; i++) {
        if (!tool_table[i].works)
            continue;
        printf("%s%s", space, tool_table[i].name);
        space = " ";
    }
}

static void print_choices(const char *choices) {
    for (; *choices; choices++)
        putchar(*choices == '|' ? ' ' : *choices);
}

static void print_verbs(void) {
    for (size_t i = 0; i < verb_count; i++)
        printf("%s%s", i ? " " : "", verb_table[i].name);
}

static void print_formats(void) {
    for (size_t i = 0; i < heap_format_count; i++)
        printf("%s%s", i ? " " : "", heap_formats[i].name);
}

static void print_weights(void) {
    for (size_t i = 0; i < heap_weight_count; i++)
        printf("%s%s", i ? " " : "", heap_weights[i].name);
}

// Behind a verb: files, and what export's two options choose from.
static void print_bash_verbs(void) {
    printf("    if ((COMP_CWORD > 1)) && [[ \" ");
    print_verbs();
    printf(" \" == *\" ${COMP_WORDS[1]} \"* ]]; then\n"
           "        name=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "        [[ $word == = ]] && word=\n"
           "        [[ $name == = ]] && name=${COMP_WORDS[COMP_CWORD - 2]}\n"
           "        case ${COMP_WORDS[1]}$name in\n"
           "        export--as) COMPREPLY=($(compgen -W '");
    print_formats();
    printf("' -- \"$word\")) ;;\n"
           "        export--by | diff--by) COMPREPLY=($(compgen -W '");
    print_weights();
    printf("' -- \"$word\")) ;;\n"
           "        *)\n"
           "            COMPREPLY=($(compgen -f -- \"$word\"))\n"
           "            [[ ${COMP_WORDS[1]} == export ]] &&\n"
           "                COMPREPLY+=($(compgen -W '--as --by -o' -- \"$word\")) ;;\n"
           "        esac\n"
           "        return\n"
           "    fi\n");
}

int verb_completion_bash(void) {
    printf("# bash completion for quern\n"
           "_quern() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} i name=\n"
           "    COMPREPLY=()\n");
    print_bash_verbs();
    printf("    # Behind the first word that is no option, the program's own completion serves.\n"
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
    for (size_t i = 0; i < option_count; i++) {
        const struct option *option = &option_table[i];
        if (!offered(option) || !(option->choices || option->type == OPTION_FILE))
            continue;
        printf("    --%s) COMPREPLY=($(compgen ", option->name);
        if (option->choices) {
            printf("-W '");
            print_choices(option->choices);
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
    for (size_t i = 0; i < option_count; i++)
        if (offered(&option_table[i]))
            printf("--%s%s ", option_table[i].name, option_table[i].type == OPTION_FLAG ? "" : "=");
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

// Help text inside a zsh specification: brackets, colons and quotes have a meaning there.
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

int verb_completion_zsh(void) {
    printf("#compdef quern\n"
           "if (( CURRENT > 2 )) && [[ \" ");
    print_verbs();
    printf(" \" == *\" $words[2] \"* ]]; then\n"
           "    case $words[2]$words[CURRENT-1] in\n"
           "    export--as) compadd ");
    print_formats();
    printf(" ;;\n"
           "    export--by | diff--by) compadd ");
    print_weights();
    printf(" ;;\n"
           "    *) _files ;;\n"
           "    esac\n"
           "    return\n"
           "fi\n"
           "if (( CURRENT > 2 )) && [[ \" ");
    print_tools();
    printf(" \" == *\" $words[2] \"* ]]; then\n"
           "    words[2]=()\n"
           "    (( CURRENT-- ))\n"
           "fi\n"
           "_arguments -S \\\n");
    for (size_t i = 0; i < option_count; i++) {
        const struct option *option = &option_table[i];
        if (!offered(option))
            continue;
        printf("    '%s--%s%s[", option->repeats || option->type == OPTION_FLAG ? "*" : "",
               option->name, option->type == OPTION_FLAG ? "" : "=-");
        print_zsh_help(option->help);
        putchar(']');
        if (strcmp(option->name, "tool") == 0) {
            printf(":tool:(");
            print_tools();
            putchar(')');
        } else if (option->choices) {
            printf(":value:(");
            print_choices(option->choices);
            putchar(')');
        } else if (option->type == OPTION_FILE) {
            printf(":file:_files");
        } else if (option->type != OPTION_FLAG) {
            printf(":value: ");
        }
        printf("' \\\n");
    }
    printf("    '(-):program:_command_names -e' \\\n"
           "    '*::arguments:_normal'\n");
    return fflush(stdout) == 0 ? 0 : 1;
}

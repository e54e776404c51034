# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the TAGC authors
#
# Everything that repeats the declarations of include/tagc.h is written by this script, so that it cannot drift:
#
#   awk -v want=KIND -f src/interfaces.awk include/tagc.h
#
#   profile   include/tagc_profile.h   the PTAGC_ declarations
#   names     src/api/profile.h        inside the library, TAGC_X stands for PTAGC_X
#   weak      src/api/weak.c           TAGC_X, weak, calls PTAGC_X
#   module    src/fortran/tagc_f08.F90 the Fortran module
#   shims     src/fortran/shims.c      what the module calls, in C
#   calls     the names of the calls, one a line
#   constants the names of the constants, one a line
#
# A declaration starts with TAGC_API and ends with ";". A type of argument that this script does not know is an error:
# see classify(). Fortran has what C has; a call NAME_c is a specific of the generic NAME.

function fail(text)
{
    print "src/interfaces.awk: " text >"/dev/stderr"
    failed = 1
    exit 1
}

function trim(s)
{
    gsub(/^[ \t]+|[ \t]+$/, "", s)
    return s
}

# ---- reading ---------------------------------------------------------------------------------------------------------

{ text = text $0 "\n" }

function strip_comments(s,    out, at, end)
{
    while ((at = index(s, "/*")) > 0) {
        out = out substr(s, 1, at - 1) " "
        s = substr(s, at + 2)
        end = index(s, "*/")
        if (!end)
            fail("a comment has no end")
        s = substr(s, end + 2)
    }
    return out s
}

function read_constants(    lines, n, i, parts, inside, value, name)
{
    n = split(text, lines, "\n")
    for (i = 1; i <= n; i++) {
        if (lines[i] ~ /^#define TAGC_[A-Z0-9_]+ +[0-9]+ *$/) {
            split(lines[i], parts, / +/)
            constant[++constants] = parts[2]
            value_of[parts[2]] = parts[3]
        } else if (lines[i] ~ /^enum \{/) {
            inside = 1
            value = -1
        } else if (inside && lines[i] ~ /^\}/) {
            inside = 0
        } else if (inside && lines[i] ~ /TAGC_/) {
            name = lines[i]
            gsub(/[ ,\t]/, "", name)
            if (index(name, "=")) {
                value = number(substr(name, index(name, "=") + 1))
                name = substr(name, 1, index(name, "=") - 1)
            } else {
                value++
            }
            if (name !~ /^TAGC_[A-Z0-9_]+$/)
                fail("not a constant: " lines[i])
            constant[++constants] = name
            value_of[name] = value
        }
    }
}

function number(s,    i, n)
{
    if (s ~ /^[0-9]+$/)
        return s + 0
    if (s !~ /^0x[0-9a-fA-F]+$/)
        fail("not a number: " s)
    for (i = 3; i <= length(s); i++)
        n = n * 16 + index("0123456789abcdef", tolower(substr(s, i, 1))) - 1
    return n
}

function read_calls(    s, at, d, head, tail, parts, n, i)
{
    s = text
    gsub(/\n#[^\n]*/, "", s)
    gsub(/[\n\t ]+/, " ", s)
    while ((at = index(s, "TAGC_API ")) > 0) {
        s = substr(s, at + 9)
        d = substr(s, 1, index(s, ";") - 1)
        at = index(d, "(")
        if (!at)
            continue
        head = trim(substr(d, 1, at - 1))
        tail = substr(d, at + 1)
        sub(/\) *$/, "", tail)
        match(head, /[A-Za-z0-9_]+$/)
        call[++calls] = substr(head, RSTART)
        result[calls] = trim(substr(head, 1, RSTART - 1))
        args[calls] = trim(tail)
        known[call[calls]] = calls
        n = split(args[calls], parts, ",")
        count[calls] = args[calls] == "void" ? 0 : n
        for (i = 1; i <= count[calls]; i++) {
            parts[i] = trim(parts[i])
            d = parts[i]
            sub(/\[\]$/, "", d)
            match(d, /[A-Za-z0-9_]+$/)
            arg_name[calls, i] = substr(d, RSTART)
            arg_type[calls, i] = trim(substr(d, 1, RSTART - 1)) (parts[i] ~ /\[\]$/ ? "[]" : "")
            arg_decl[calls, i] = parts[i]
        }
    }
    if (!calls)
        fail("no declarations found")
}

# ---- C: profile, names, weak -----------------------------------------------------------------------------------------

function banner(what)
{
    print "/* SPDX-License-Identifier: BSD-3-Clause"
    print " * Copyright (c) the TAGC authors"
    print " *"
    print " * Made from tagc.h by src/interfaces.awk. " what " */"
    print "/* clang-format off */"
}

function profile(    i)
{
    banner("Every call once more under the name that tools call when\n" \
           " * they have replaced TAGC_X, which is a weak symbol, by one of their own: as PMPI_X is to MPI_X.")
    print "#ifndef TAGC_PROFILE_H\n#define TAGC_PROFILE_H\n\n#include <tagc.h>\n"
    print "#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
    for (i = 1; i <= calls; i++)
        print "TAGC_API " result[i] " P" call[i] "(" args[i] ");"
    print "\n#ifdef __cplusplus\n}\n#endif\n#endif"
}

function names(    i)
{
    banner("Comes before everything else in each file of the library:\n" \
           " * what is written there as TAGC_X is PTAGC_X, so that the library never calls what a tool has put in its place.")
    print "#ifndef TAGCI_API_PROFILE_H\n#define TAGCI_API_PROFILE_H\n"
    for (i = 1; i <= calls; i++)
        print "#define " call[i] " P" call[i]
    print "\n#endif"
}

function weak(    i, j, list)
{
    banner("The names that programs call, unless a tool replaces them.")
    print "#include \"tagc.h\""
    for (i = 1; i <= calls; i++) {
        list = ""
        for (j = 1; j <= count[i]; j++)
            list = list (j > 1 ? ", " : "") arg_name[i, j]
        print "\n#undef " call[i]
        print "TAGC_API __attribute__((weak)) " result[i] " " call[i] "(" args[i] ")\n{\n    return P" call[i] "(" list ");\n}"
    }
}

# ---- Fortran ---------------------------------------------------------------------------------------------------------

# What an argument is to Fortran
function classify(i, j,    t, n, k, f)
{
    t = arg_type[i, j]
    n = arg_name[i, j]
    f = call[i]
    if (n == "stream" && t == "void *")
        return "pointer"
    if (t == "const void *")
        return "buffer_in"
    if (t == "void *")
        return "buffer"
    if (t == "int" || t == "MPI_Count" || t == "MPI_Aint")
        return "number"
    if (t == "const int[]" || t == "const MPI_Count[]" || t == "const MPI_Aint[]")
        return "numbers"
    if (t == "int *" && n == "flag")
        return "logical_out"
    if (t == "int *" || t == "MPI_Count *" || t == "double *")
        return "number_out"
    if (t ~ /^MPI_(Comm|Datatype|Op|Info)$/)
        return "handle"
    if (t ~ /^MPI_(Info|Request|Comm) \*$/)
        return "handle_out"
    if (t == "TAGC_Tensor" || t == "TAGC_Request")
        return "object"
    if (t == "TAGC_Tensor *" || t == "TAGC_Request *")
        return f ~ /_create(_c)?$|_init(_c)?$|^TAGC_I/ ? "object_out" : "object_inout"
    if (t == "TAGC_Tensor[]" || t == "TAGC_Request[]")
        return "objects"
    if (t == "const char *")
        return "string_in"
    if (t == "char *" && arg_name[i, j + 1] == "resultlen")
        return "string_out"
    fail(f ": argument '" arg_decl[i, j] "' has no counterpart in Fortran yet")
}

function kind_of(t)
{
    return t ~ /MPI_Count/ ? "integer(count_kind)" : t ~ /MPI_Aint/ ? "integer(aint_kind)" : \
           t ~ /double/ ? "real(c_double)" : "integer"
}

function bare(t) # MPI_Info from MPI_Info *
{
    gsub(/[^A-Za-z_]|const|\[|\]/, "", t)
    return t
}

# An argument mpi_request has the type's own name, in Fortran
function type_name(t)
{
    t = bare(t)
    return t == "MPI_Request" ? "MPI_Request_handle" : t
}

function shim_name(i)
{
    return "tagcf_" tolower(substr(call[i], 6))
}

# Lines of no more than 120 characters
function wrap(line,    indent, out, cut, width)
{
    match(line, /^ */)
    indent = substr(line, 1, RLENGTH) "    "
    width = 118
    while (length(line) > width) {
        cut = width
        while (cut > 60 && substr(line, cut, 1) != ",")
            cut--
        if (cut == 60)
            fail("no place to break: " line)
        out = out substr(line, 1, cut) " &\n"
        line = indent trim(substr(line, cut + 1))
    }
    print out line
}

function async(i)
{
    return call[i] ~ /_init(_c)?$|^TAGC_I/ ? ", asynchronous" : ""
}

function has_handles(i,    j, c)
{
    for (j = 1; j <= count[i]; j++) {
        c = classify(i, j)
        if (c == "handle" || c == "handle_out")
            return 1
    }
    return 0
}

function generic_name(i,    g)
{
    g = call[i]
    if (g ~ /_c$/) {
        sub(/_c$/, "", g)
        if (!(g in known))
            fail(call[i] " has no form without _c")
    }
    return g
}

# Declares argument j of call i for users; flavour: f08 or int
function declare(i, j, flavour,    c, t, n)
{
    c = classify(i, j)
    t = arg_type[i, j]
    n = arg_name[i, j]
    if (c == "buffer_in")
        return "type(*), dimension(..), intent(in)" async(i) " :: " n
    if (c == "buffer")
        return "type(*), dimension(..)" async(i) " :: " n
    if (c == "pointer")
        return "type(c_ptr), intent(in) :: " n
    if (c == "number")
        return kind_of(t) ", intent(in) :: " n
    if (c == "numbers")
        return kind_of(t) ", intent(in) :: " n "(*)" # not looked at after the call
    if (c == "number_out")
        return kind_of(t) ", intent(out) :: " n
    if (c == "logical_out")
        return "logical, intent(out) :: " n
    if (c == "handle" || c == "handle_out")
        return (flavour == "int" ? "integer" : "type(" type_name(t) ")") ", intent(" (c == "handle" ? "in" : "out") ") :: " n
    if (c == "object")
        return "type(" bare(t) "), intent(in) :: " n
    if (c == "object_out")
        return "type(" bare(t) "), intent(out) :: " n
    if (c == "object_inout")
        return "type(" bare(t) "), intent(inout) :: " n
    if (c == "objects")
        return "type(" bare(t) "), intent(inout) :: " n "(*)"
    if (c == "string_in")
        return "character(len=*), intent(in) :: " n
    if (c == "string_out")
        return "character(len=*), intent(out) :: " n
}

# ... for the C side
function declare_c(i, j,    c, t, n)
{
    c = classify(i, j)
    t = arg_type[i, j]
    n = arg_name[i, j]
    if (c == "buffer_in" || c == "buffer" || c == "numbers" || c == "objects")
        return declare(i, j)
    if (c == "pointer")
        return "type(c_ptr), value :: " n
    if (c == "number")
        return kind_of(t) ", value :: " n
    if (c == "number_out")
        return declare(i, j)
    if (c == "logical_out" || c == "handle_out")
        return "integer, intent(out) :: " n
    if (c == "handle")
        return "integer, value :: " n
    if (c == "object")
        return "integer(c_intptr_t), value :: " n
    if (c == "object_out" || c == "object_inout")
        return "integer(c_intptr_t), intent(inout) :: " n
    if (c == "string_in")
        return "character(kind=c_char), intent(in) :: " n "(*)"
    if (c == "string_out")
        return "character(kind=c_char), intent(out) :: " n "(*)"
}

# ... and as the actual argument of the C side
function actual(i, j, flavour,    c, n)
{
    c = classify(i, j)
    n = arg_name[i, j]
    if (c == "logical_out")
        return "c_" n
    if ((c == "handle" || c == "handle_out") && flavour == "f08")
        return n "%MPI_VAL"
    if (c == "object" || c == "object_out" || c == "object_inout")
        return n "%handle"
    if (c == "string_in")
        return "trim(" n ")//c_null_char"
    if (c == "string_out")
        return "c_" n
    return n
}

function arg_list(i,    j, list)
{
    for (j = 1; j <= count[i]; j++)
        list = list (j > 1 ? ", " : "") arg_name[i, j]
    return list
}

# A call that returns a handle: a function of the name of its macro, and a subroutine of its own name
function is_function(i)
{
    return result[i] != "int"
}

function macro_of(i,    m)
{
    m = call[i]
    sub(/^TAGC_Predefined_/, "", m)
    return "TAGC_" toupper(m)
}

function generics(    i, j, g, list, done, n, specifics, names_of)
{
    for (i = 1; i <= calls; i++) {
        g = generic_name(i)
        if (!(g in done)) {
            done[g] = 1
            list[++n] = g
        }
        if (is_function(i) || has_handles(i)) {
            f08_of[g] = f08_of[g] (f08_of[g] == "" ? "" : ", ") call[i] "_f08"
            int_of[g] = int_of[g] (int_of[g] == "" ? "" : ", ") call[i] "_int"
        } else {
            int_of[g] = int_of[g] (int_of[g] == "" ? "" : ", ") call[i] "_any"
        }
    }
    for (j = 1; j <= n; j++) {
        g = list[j]
        print "    interface " g
        if (f08_of[g] != "") {
            print "#ifdef TAGCF_MPI_F08"
            wrap("        procedure " f08_of[g])
            print "#endif"
        }
        wrap("        procedure " int_of[g])
        print "    end interface"
        print "    public :: " g
    }
}

function c_interfaces(    i, j, line)
{
    print "\n    interface"
    for (i = 1; i <= calls; i++) {
        if (is_function(i)) {
            print "        function " shim_name(i) "() bind(C, name=\"" shim_name(i) "\") result(handle)"
            print "            import"
            print "            integer(c_int) :: handle"
            print "        end function"
            continue
        }
        wrap("        function " shim_name(i) "(" arg_list(i) ") &\n            bind(C, name=\"" shim_name(i) "\") result(code)")
        print "            import"
        for (j = 1; j <= count[i]; j++) {
            line = declare_c(i, j)
            sub(/^integer,/, "integer(c_int),", line)
            print "            " line
        }
        print "            integer(c_int) :: code"
        print "        end function"
    }
    print "    end interface"
}

function specific(i, flavour,    j, c, name, actuals, n)
{
    name = call[i] "_" flavour
    wrap("\n    subroutine " name "(" arg_list(i) (count[i] ? ", " : "") "ierror)")
    for (j = 1; j <= count[i]; j++)
        print "        " declare(i, j, flavour)
    print "        integer, optional, intent(out) :: ierror"
    print "        integer(c_int) :: code"
    for (j = 1; j <= count[i]; j++) {
        c = classify(i, j)
        actuals = actuals (j > 1 ? ", " : "") actual(i, j, flavour)
        if (c == "logical_out")
            print "        integer :: c_" arg_name[i, j]
        if (c == "string_out")
            print "        character(kind=c_char) :: c_" arg_name[i, j] "(string_max)"
    }
    wrap("        code = " shim_name(i) "(" actuals ")")
    for (j = 1; j <= count[i]; j++) {
        c = classify(i, j)
        n = arg_name[i, j]
        if (c == "logical_out")
            print "        " n " = c_" n " /= 0"
        if (c == "string_out")
            print "        call from_c(c_" n ", " n ", resultlen)"
    }
    print "        if (present(ierror)) ierror = code"
    print "    end subroutine"
}

function function_specifics(i,    m, t)
{
    m = macro_of(i)
    t = result[i]
    print "#ifdef TAGCF_MPI_F08"
    print "\n    function " m "()"
    print "        type(" t ") :: " m
    print "        " m "%MPI_VAL = " shim_name(i) "()"
    print "    end function"
    print "\n    subroutine " call[i] "_f08(handle, ierror)"
    print "        type(" t "), intent(out) :: handle"
    print "        integer, optional, intent(out) :: ierror"
    print "        handle%MPI_VAL = " shim_name(i) "()"
    print "        if (present(ierror)) ierror = 0"
    print "    end subroutine"
    print "#endif"
    print "\n    subroutine " call[i] "_int(handle, ierror)"
    print "        integer, intent(out) :: handle"
    print "        integer, optional, intent(out) :: ierror"
    print "        handle = " shim_name(i) "()"
    print "        if (present(ierror)) ierror = 0"
    print "    end subroutine"
}

function module(    i, line)
{
    while ((getline line < skeleton) > 0) {
        if (line ~ /^ *!@constants/) {
            for (i = 1; i <= constants; i++)
                print "    integer, parameter, public :: " constant[i] " = " value_of[constant[i]]
        } else if (line ~ /^ *!@functions/) {
            print "#ifdef TAGCF_MPI_F08"
            for (i = 1; i <= calls; i++)
                if (is_function(i))
                    print "    public :: " macro_of(i)
            print "#endif"
        } else if (line ~ /^ *!@generics/) {
            generics()
        } else if (line ~ /^ *!@c_interfaces/) {
            c_interfaces()
        } else if (line ~ /^ *!@procedures/) {
            for (i = 1; i <= calls; i++) {
                if (is_function(i)) {
                    function_specifics(i)
                } else if (has_handles(i)) {
                    print "#ifdef TAGCF_MPI_F08"
                    specific(i, "f08")
                    print "#endif"
                    specific(i, "int")
                } else {
                    specific(i, "any")
                }
            }
        } else {
            print line
        }
    }
}

# ---- the C side of Fortran -------------------------------------------------------------------------------------------

function shim_arg(i, j,    c, t, n)
{
    c = classify(i, j)
    t = arg_type[i, j]
    n = arg_name[i, j]
    if (c == "buffer_in" || c == "buffer")
        return "CFI_cdesc_t *" n
    if (c == "handle")
        return "MPI_Fint " n
    if (c == "handle_out")
        return "MPI_Fint *" n
    return arg_decl[i, j]
}

function shim_actual(i, j,    c, t, n)
{
    c = classify(i, j)
    t = bare(arg_type[i, j])
    n = arg_name[i, j]
    if (c == "buffer_in" || c == "buffer")
        return "tagcf_buffer(" n ")"
    if (c == "handle")
        return (t == "MPI_Datatype" ? "MPI_Type" : t) "_f2c(" n ")"
    if (c == "handle_out")
        return "&c_" n
    return n
}

function shims(    i, j, c, params, actuals, decl, after, n, t, ret)
{
    banner("What the module tagc_f08 calls: handles and buffers of Fortran\n * become those of C.")
    print "#include \"fortran/fortran.h\"\n"
    for (i = 1; i <= calls; i++) {
        params = actuals = decl = after = ""
        if (is_function(i)) {
            t = result[i]
            print "MPI_Fint " shim_name(i) "(void);\nMPI_Fint " shim_name(i) "(void)\n{"
            print "    return " (t == "MPI_Datatype" ? "MPI_Type" : t) "_c2f(" call[i] "());\n}\n"
            continue
        }
        for (j = 1; j <= count[i]; j++) {
            c = classify(i, j)
            n = arg_name[i, j]
            t = bare(arg_type[i, j])
            params = params (j > 1 ? ", " : "") shim_arg(i, j)
            actuals = actuals (j > 1 ? ", " : "") shim_actual(i, j)
            if (c == "handle_out") {
                decl = decl "    " t " c_" n " = " toupper(t) "_NULL;\n"
                after = after "    *" n " = " t "_c2f(c_" n ");\n"
            }
        }
        print "int " shim_name(i) "(" (params == "" ? "void" : params) ");"
        print "int " shim_name(i) "(" (params == "" ? "void" : params) ")\n{"
        if (after == "")
            print "    return " call[i] "(" actuals ");\n}\n"
        else
            print decl "    int code = " call[i] "(" actuals ");\n" after "    return code;\n}\n"
    }
}

END {
    if (failed)
        exit 1
    text = strip_comments(text)
    read_constants()
    read_calls()
    if (want == "profile")
        profile()
    else if (want == "names")
        names()
    else if (want == "weak")
        weak()
    else if (want == "module")
        module()
    else if (want == "shims")
        shims()
    else if (want == "calls")
        for (i = 1; i <= calls; i++)
            print call[i]
    else if (want == "constants")
        for (i = 1; i <= constants; i++)
            print constant[i]
    else
        fail("want is one of profile, names, weak, module, shims, calls, constants")
}

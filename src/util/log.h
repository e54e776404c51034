/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * Messages to people: one line each on stderr, "tagc: rank R: ...". */
#ifndef TAGCI_UTIL_LOG_H
#define TAGCI_UTIL_LOG_H

void tagci_log_warn_once(const char *format, ...) __attribute__((format(printf, 1, 2))); /* same text: once a process */
/* Appends one line to the file that the setting `trace` names ("-": stderr); "%r" in the name becomes the rank. Opened
 * once for each name, line-buffered, closed at exit. */
void tagci_trace(const char *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

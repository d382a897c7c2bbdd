// Part of supervisor/tool.h, for tools that find errors or judge a heap: the way of a finding from
// the target to the reader.
//
//   1. The tool makes a named_finding (or named_loss) of the neutral model in profile/findings, and
//      asks the suppressions of its settings whether to hide it.
//   2. It shows the finding in the log (finding_text, loss_text) or, with --xml=yes, in the XML
//      document of the process (xml_finding, then xml_put).
//   3. It adds the finding to outputs_results(run->request), if that is not NULL. The supervisor
//      writes these results at the end of the run, as SARIF, JUnit, JSON and annotations.
//
//   budgets      limits of the run (--max-peak and its kin). The tool fills in the numbers that it
//                knows when a process has ended; the supervisor compares and reports.
//   diagnosis    what the numbers of a heap mean for the user, in words. The tool gives the facts.
#ifndef QUERN_SUPERVISOR_TOOL_FINDINGS_H
#define QUERN_SUPERVISOR_TOOL_FINDINGS_H

#include "report/findings/named_finding.h"
#include "report/findings/suppressions.h"
#include "report/findings/text.h"
#include "report/findings/xml.h"
#include "supervisor/budgets.h"
#include "supervisor/diagnosis.h"
#include "supervisor/outputs.h"
#include "supervisor/xml_out.h"

#endif

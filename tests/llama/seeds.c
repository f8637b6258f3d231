/* SPDX-License-Identifier: Apache-2.0 */
/* Writes sound and nearly sound states into a folder, for the fuzzer to start from: seeds FOLDER */
#undef NDEBUG
#include <assert.h>
#include <limits.h>
#include <stdio.h>

#include "tests/llama/state.h"

static void write_seed(const char *folder, const char *name, const struct state_spec *spec)
{
	struct state s = state_make(spec);
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "wb");
	assert(f && fwrite(s.data, 1, s.size, f) == s.size);
	assert(fclose(f) == 0);
	state_free(&s);
}

int main(int argc, char **argv)
{
	static const uint32_t order[] = {2, 0, 1, 3};
	struct state_spec spec;
	char name[32];

	assert(argc == 2);
	for (uint32_t format = 3; format <= 4; format++) {
		spec = state_plain(format, 0, 4);
		for (int t = 0; t < 4; t++)
			spec.row[t] = 4;
		snprintf(name, sizeof(name), "plain-%u", format);
		write_seed(argv[1], name, &spec);
		spec.order = order;
		spec.seq = 3;
		snprintf(name, sizeof(name), "order-%u", format);
		write_seed(argv[1], name, &spec);
		spec.n_tensors = 2;
		snprintf(name, sizeof(name), "k-only-%u", format);
		write_seed(argv[1], name, &spec);
		spec.ext = true;
		snprintf(name, sizeof(name), "ext-%u", format);
		write_seed(argv[1], name, &spec);
	}
	return 0;
}

/**
 * What `nvidia-smi` writes of two H100, of which one is cut (MIG) into one slice of 40 GB with two
 * compute instances and one of 10 GB, as far as it is read; by NVIDIA's guide and its XML (version 12).
 */

/** `--query-gpu=index,uuid,name,memory.total,memory.used,mig.mode.current,pci.bus_id`. */
export const CUT = `0, GPU-one, NVIDIA H100 80GB HBM3, 81559, 87, Enabled, 00000000:0F:00.0
1, GPU-two, NVIDIA H100 80GB HBM3, 81559, 4, Disabled, 00000000:2D:00.0
`;

/** `-L`. */
export const LIST = `GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-one)
  MIG 1c.3g.40gb  Device  0: (UUID: MIG-a)
  MIG 1c.3g.40gb  Device  1: (UUID: MIG-b)
  MIG 1g.10gb     Device  2: (UUID: MIG-c)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-two)
`;

function migDevice(index: number, [gi, ci]: readonly [number, number], mib: number): string {
  return `\t\t\t<mig_device>
\t\t\t\t<index>${index}</index>
\t\t\t\t<gpu_instance_id>${gi}</gpu_instance_id>
\t\t\t\t<compute_instance_id>${ci}</compute_instance_id>
\t\t\t\t<device_attributes>
\t\t\t\t\t<shared>
\t\t\t\t\t\t<multiprocessor_count>16</multiprocessor_count>
\t\t\t\t\t</shared>
\t\t\t\t</device_attributes>
\t\t\t\t<ecc_error_count>
\t\t\t\t\t<volatile_count>
\t\t\t\t\t\t<sram_uncorrectable>0</sram_uncorrectable>
\t\t\t\t\t</volatile_count>
\t\t\t\t</ecc_error_count>
\t\t\t\t<fb_memory_usage>
\t\t\t\t\t<total>${mib} MiB</total>
\t\t\t\t\t<reserved>0 MiB</reserved>
\t\t\t\t\t<used>37 MiB</used>
\t\t\t\t\t<free>${mib - 37} MiB</free>
\t\t\t\t</fb_memory_usage>
\t\t\t\t<bar1_memory_usage>
\t\t\t\t\t<total>65535 MiB</total>
\t\t\t\t\t<used>1 MiB</used>
\t\t\t\t\t<free>65534 MiB</free>
\t\t\t\t</bar1_memory_usage>
\t\t\t</mig_device>
`;
}

/** `-q -x`; `programName`: of a program on the first GPU. */
export function xmlWith(programName: string): string {
  return `<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
\t<timestamp>Fri Nov 27 10:00:00 2026</timestamp>
\t<driver_version>580.95.05</driver_version>
\t<attached_gpus>2</attached_gpus>
\t<gpu id="00000000:0F:00.0">
\t\t<product_name>NVIDIA H100 80GB HBM3</product_name>
\t\t<mig_mode>
\t\t\t<current_mig>Enabled</current_mig>
\t\t\t<pending_mig>Enabled</pending_mig>
\t\t</mig_mode>
\t\t<mig_devices>
${migDevice(0, [2, 0], 40_448)}${migDevice(1, [2, 1], 40_448)}${migDevice(2, [9, 0], 9_984)}\t\t</mig_devices>
\t\t<uuid>GPU-one</uuid>
\t\t<minor_number>0</minor_number>
\t\t<fb_memory_usage>
\t\t\t<total>81559 MiB</total>
\t\t\t<reserved>551 MiB</reserved>
\t\t\t<used>87 MiB</used>
\t\t\t<free>80922 MiB</free>
\t\t</fb_memory_usage>
\t\t<processes>
\t\t\t<process_info>
\t\t\t\t<gpu_instance_id>9</gpu_instance_id>
\t\t\t\t<compute_instance_id>0</compute_instance_id>
\t\t\t\t<pid>4711</pid>
\t\t\t\t<type>C</type>
\t\t\t\t<process_name>${programName}</process_name>
\t\t\t\t<used_memory>512 MiB</used_memory>
\t\t\t</process_info>
\t\t</processes>
\t</gpu>
\t<gpu id="00000000:2D:00.0">
\t\t<product_name>NVIDIA H100 80GB HBM3</product_name>
\t\t<mig_mode>
\t\t\t<current_mig>Disabled</current_mig>
\t\t\t<pending_mig>Disabled</pending_mig>
\t\t</mig_mode>
\t\t<mig_devices>
\t\t\tNone
\t\t</mig_devices>
\t\t<uuid>GPU-two</uuid>
\t\t<minor_number>1</minor_number>
\t\t<processes>
\t\t</processes>
\t</gpu>
</nvidia_smi_log>
`;
}

export const XML = xmlWith("/usr/bin/python3");
